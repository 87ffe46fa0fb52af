import type { Logger } from 'express-model-gateway'
import type { Observability } from './observability.ts'
import type { ObservabilitySettings } from './observability-settings.ts'
import { loadOptional, missingPackages } from './optional-packages.ts'

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
    const { startObservability } = await import('./observability.ts')
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
