/** The chain with idempotency and limits, both in memory. */
import { idempotency, rateLimit } from '../../../lib/index.ts'
import { serveChain } from '../chain.ts'

serveChain([idempotency(), rateLimit()])
