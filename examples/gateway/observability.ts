import { randomUUID } from 'node:crypto'
import { DiagLogLevel, diag, metrics } from '@opentelemetry/api'
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus'
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import type { Logger } from 'express-model-gateway'
import { AggregatedHistograms } from './aggregated-histograms.ts'
import type { ObservabilitySettings } from './observability-settings.ts'
import { observeProcess } from './process-metrics.ts'

/** The registered OpenTelemetry SDK. */
export interface Observability {
  /** Returns the metrics of this process in Prometheus's text format. */
  readonly metricsText: () => Promise<string>
  /** Sends what has not been sent yet. */
  close(): Promise<void>
}

const CLOSE_TIMEOUT_MS = 3000
/** All labels are bounded already. In the SDK's own bound, further series overwrite each other. */
const UNBOUNDED = { instrumentName: '*', aggregationCardinalityLimit: Number.POSITIVE_INFINITY }

/** Registers the SDK for metrics and, with a collector, for traces. Call it once, before you create the gateway. */
export async function startObservability(
  settings: ObservabilitySettings,
  logger: Logger,
): Promise<Observability> {
  // The exporters are as much to load as all the rest of the SDK.
  const collector = settings.toCollector ? await import('./collector.ts') : undefined
  logSdkProblems(logger)
  // The instance id separates the series of several processes.
  const names = { 'service.name': 'express-model-gateway', 'service.instance.id': randomUUID() }
  const resource = defaultResource()
    .merge(resourceFromAttributes(names))
    .merge(detectResources({ detectors: [envDetector] }))
  const histograms = new AggregatedHistograms(resource)
  const scrapes = new PrometheusExporter({ preventServerStart: true, metricProducers: [histograms] })
  const meters = new MeterProvider({ resource, readers: [scrapes], views: [UNBOUNDED] })
  metrics.setGlobalMeterProvider(histograms.wrap(meters))
  const endProcess = observeProcess(metrics.getMeter('express-model-gateway-server'))
  const pushes = collector && new collector.MetricPushes(scrapes)
  const tracers = collector?.registerTraces(settings.traces, resource)
  return {
    metricsText: metricsText(scrapes),
    async close() {
      endProcess()
      const closing = Promise.allSettled([tracers?.shutdown(), pushes?.close()]).then(() => meters.shutdown())
      const late = new Promise((resolve) => setTimeout(resolve, CLOSE_TIMEOUT_MS, 'late').unref())
      if ((await Promise.race([closing, late])) === 'late')
        logger.warn({}, 'telemetry: the collector did not accept all remaining data before the shutdown')
    },
  }
}

function metricsText(scrapes: PrometheusExporter): () => Promise<string> {
  const serializer = new PrometheusSerializer('', false, undefined, false, true)
  return async function metricsText() {
    const { resourceMetrics, errors } = await scrapes.collect()
    for (const error of errors) diag.error('collecting metrics failed', error)
    return serializer.serialize(resourceMetrics)
  }
}

/** Logs warnings and errors of the SDK, such as an unreachable collector; by default it logs nothing. */
function logSdkProblems(logger: Logger): void {
  const logAt =
    (level: 'warn' | 'error') =>
    (message: string, ...details: unknown[]) =>
      logger[level]({ details: details.map(String) }, `telemetry: ${message}`)
  const ignore = (): void => {}
  const log = { error: logAt('error'), warn: logAt('warn'), info: ignore, debug: ignore, verbose: ignore }
  diag.setLogger(log, { logLevel: DiagLogLevel.WARN })
}
