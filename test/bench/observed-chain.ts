import { startObservability } from '../../examples/gateway/observability.ts'
import { billingGuard, idempotency, LeasePool, MemoryLedger, rateLimit, telemetry } from '../../lib/index.ts'
import { benchConfig, serveChain } from './chain.ts'

/**
 * The whole chain, everything in memory, with the metrics of the example gateway, and traces of a share of the calls. The
 * scripted upstream is the collector: it takes what it is sent.
 */
export function serveObservedChain(traceShare: number): void {
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = process.env.UPSTREAM
  startObservability(
    { toCollector: true, traceShare },
    { info: () => {}, warn: console.error, error: console.error },
  )
  const config = benchConfig()
  const { catalog } = config
  const pool = new LeasePool({ ledger: new MemoryLedger(config) })
  serveChain(config, {
    around: [telemetry({ catalog, states: { pool } })],
    guards: [idempotency(), rateLimit(), billingGuard({ pool, catalog })],
  })
}
