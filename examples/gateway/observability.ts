import { randomUUID } from 'node:crypto'
import { DiagLogLevel, diag, metrics } from '@opentelemetry/api'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus'
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import type { Logger } from 'express-model-gateway'
import { TalliedHistograms } from './tallied-histograms.ts'
import { registerTraces, type TraceSettings } from './traces.ts'

/** Where metrics and traces go. */
export interface ObservabilitySettings {
  /**
   * Whether they go to a collector, over OTLP. The exporters read where that is, and how it is spoken to, from the
   * environment: `OTEL_EXPORTER_OTLP_ENDPOINT` and its like.
   */
  readonly toCollector: boolean
  readonly traces: TraceSettings
}

/** OpenTelemetry's SDK, registered. */
export interface Observability {
  /** A scrape of this process, in the text format of Prometheus. */
  readonly metricsText: () => Promise<string>
  /** Sends what is not sent yet. */
  close(): Promise<void>
}

const CLOSES_WITHIN_MS = 3000
const PUSH_EVERY_MS = 60_000

/** Registers the SDK for metrics and, with a collector, for traces. Once in a process, before the gateway is made. */
export function startObservability(settings: ObservabilitySettings, logger: Logger): Observability {
  tellProblems(logger)
  // Counts of two processes that bear the same names would be taken for one series that rises and falls.
  const names = { 'service.name': 'express-model-gateway', 'service.instance.id': randomUUID() }
  const resource = defaultResource()
    .merge(resourceFromAttributes(names))
    .merge(detectResources({ detectors: [envDetector] }))
  const histograms = new TalliedHistograms(resource)
  const scrapes = new PrometheusExporter({ preventServerStart: true, metricProducers: [histograms] })
  const meters = new MeterProvider({ resource, readers: [scrapes] })
  metrics.setGlobalMeterProvider(histograms.beside(meters))
  const pushes = settings.toCollector ? new MetricPushes(scrapes) : undefined
  const tracers = settings.toCollector ? registerTraces(settings.traces, resource) : undefined
  return {
    metricsText: metricsText(scrapes),
    async close() {
      const closing = Promise.allSettled([tracers?.shutdown(), pushes?.close()]).then(() => meters.shutdown())
      const late = new Promise((resolve) => setTimeout(resolve, CLOSES_WITHIN_MS, 'late').unref())
      if ((await Promise.race([closing, late])) === 'late')
        logger.warn({}, 'telemetry: the collector did not take all that was still to be sent')
    },
  }
}

/** Sends a collector what scrapes are told: with a reader of its own, all that is recorded would be recorded twice. */
class MetricPushes {
  readonly #scrapes: PrometheusExporter
  readonly #exporter = new OTLPMetricExporter()
  readonly #timer = setInterval(() => void this.#push(), PUSH_EVERY_MS).unref()

  constructor(scrapes: PrometheusExporter) {
    this.#scrapes = scrapes
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#push()
    await this.#exporter.shutdown()
  }

  /** Never rejects; what fails is told to the log. */
  async #push(): Promise<void> {
    try {
      const { resourceMetrics } = await this.#scrapes.collect()
      await new Promise<void>((resolve) => {
        this.#exporter.export(resourceMetrics, ({ error }) => {
          if (error) diag.error('metrics could not be sent', error)
          resolve()
        })
      })
    } catch (error) {
      diag.error('metrics could not be sent', error)
    }
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

/** A collector that cannot be reached is told of; without this the SDK says nothing. */
function tellProblems(logger: Logger): void {
  const tell =
    (level: 'warn' | 'error') =>
    (message: string, ...details: unknown[]) =>
      logger[level]({ details: details.map(String) }, `telemetry: ${message}`)
  const ignore = (): void => {}
  const log = { error: tell('error'), warn: tell('warn'), info: ignore, debug: ignore, verbose: ignore }
  diag.setLogger(log, { logLevel: DiagLogLevel.WARN })
}
