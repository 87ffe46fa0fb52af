import type { RequestHandler } from 'express'
import type { Logger } from 'express-model-gateway'
import type { ObservabilitySettings } from '../config/environment.ts'
import { loadOptional, missingPackages } from '../config/packages.ts'
import { singleFlight } from '../single-flight.ts'
import type { Peers } from '../workers/reports.ts'
import type { Observability } from './open-telemetry.ts'

const PACKAGES =
  '@opentelemetry/resources @opentelemetry/sdk-metrics @opentelemetry/sdk-trace @opentelemetry/core @opentelemetry/exporter-prometheus @opentelemetry/exporter-metrics-otlp-http @opentelemetry/exporter-trace-otlp-http'

/**
 * Registers OpenTelemetry's SDK if it is installed; undefined if it is not.
 *
 * @throws {ConfigError} if a collector is set and the SDK is not installed.
 */
export async function openObservability(
  settings: ObservabilitySettings,
  logger: Logger,
): Promise<Observability | undefined> {
  const started = await loadOptional(async () => {
    const { startObservability } = await import('./open-telemetry.ts')
    return startObservability(settings, logger)
  })
  if (started) return started
  if (settings.toCollector) throw missingPackages('OTEL_EXPORTER_OTLP_ENDPOINT', PACKAGES)
  logger.warn(
    {},
    'there is no /metrics: OpenTelemetry is not installed (npm install express-model-gateway-server)',
  )
  return undefined
}

/** Making an answer takes long only while a worker does not report its figures. */
const MAX_AGE_MS = 1000

/**
 * Answers scrapes of this process or of all workers. They need no key, so they take at most a tenth of the time: scrapes
 * share an answer while it is made and for nine times as long, a second at most.
 */
export function metricsPage(ownText: () => Promise<string>, peers: Peers | undefined): RequestHandler {
  const scrape = singleFlight(
    async () => (peers ? ((await peers.ask('metrics'))[0]?.figures ?? '') : ownText()),
    (tookMs) => Math.min(MAX_AGE_MS, 9 * tookMs),
  )
  return async function metricsPage(_req, res) {
    res.type('text/plain; version=0.0.4; charset=utf-8').send(await scrape())
  }
}
