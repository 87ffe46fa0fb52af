/** The whole chain, everything in memory, with a line whose answers are translated. */
import { billingGuard, idempotency, LeasePool, MemoryLedger, rateLimit } from '../../../lib/index.ts'
import { benchConfig, serveChain } from '../chain.ts'

const config = benchConfig('anthropic')
const pool = new LeasePool({ ledger: new MemoryLedger(config) })
serveChain(config, {
  guards: [idempotency(), rateLimit(), billingGuard({ pool, catalog: config.catalog })],
})
