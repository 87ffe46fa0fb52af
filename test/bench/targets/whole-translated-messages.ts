/** The whole chain, everything in memory, asked in Anthropic's protocol, with an OpenAI-style line. */
import { billingGuard, idempotency, LeasePool, MemoryLedger, rateLimit } from '../../../lib/index.ts'
import { benchConfig, serveChain } from '../chain.ts'

const config = benchConfig()
const pool = new LeasePool({ ledger: new MemoryLedger(config) })
serveChain(config, {
  guards: [idempotency(), rateLimit(), billingGuard({ pool, catalog: config.catalog })],
})
