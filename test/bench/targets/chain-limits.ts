/** The chain with idempotency and limits, both in memory. */
import { idempotency, rateLimit } from '../../../lib/index.ts'
import { benchConfig, serveChain } from '../chain.ts'

serveChain(benchConfig(), { guards: [idempotency(), rateLimit()] })
