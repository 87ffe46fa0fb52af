import { readSettings } from '../../examples/gateway/config/environment.ts'
import { startObservability } from '../../examples/gateway/telemetry/open-telemetry.ts'
import { billingGuard, idempotency, LeasePool, MemoryLedger, rateLimit, telemetry } from '../../lib/index.ts'
import { benchConfig, serveChain } from './chain.ts'

/**
 * The whole chain, everything in memory, with the metrics and traces of the example gateway as the environment has them. The
 * scripted upstream is the collector: it takes what it is sent.
 */
export async function serveObservedChain(env: NodeJS.ProcessEnv = {}): Promise<void> {
  // Read by the exporters, too.
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = process.env.UPSTREAM
  const { observability } = readSettings({ ...process.env, ...env })
  await startObservability(observability, { info: () => {}, warn: console.error, error: console.error })
  const config = benchConfig()
  const { catalog } = config
  const pool = new LeasePool({ ledger: new MemoryLedger(config) })
  serveChain(config, {
    around: [telemetry({ catalog, states: { pool } })],
    guards: [idempotency(), rateLimit(), billingGuard({ pool, catalog })],
  })
}
