/** The whole chain in memory with `telemetry` in it, and no SDK registered. */
import {
  billingGuard,
  idempotency,
  LeasePool,
  MemoryLedger,
  rateLimit,
  telemetry,
} from '../../../lib/index.ts'
import { benchConfig, serveChain } from '../chain.ts'

const config = benchConfig()
const { catalog } = config
const pool = new LeasePool({ ledger: new MemoryLedger(config) })
serveChain(config, {
  around: [telemetry({ catalog, states: { pool } })],
  guards: [idempotency(), rateLimit(), billingGuard({ pool, catalog })],
})
