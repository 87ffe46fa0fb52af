import { diag } from '@opentelemetry/api'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import type { PrometheusExporter } from '@opentelemetry/exporter-prometheus'

const PUSH_INTERVAL_MS = 60_000

/** Sends the metrics of the scrape reader to a collector: with a second reader, each value would be recorded twice. */
export class MetricPushes {
  readonly #scrapes: PrometheusExporter
  readonly #exporter = new OTLPMetricExporter()
  readonly #timer = setInterval(() => void this.#push(), PUSH_INTERVAL_MS).unref()

  constructor(scrapes: PrometheusExporter) {
    this.#scrapes = scrapes
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#push()
    await this.#exporter.shutdown()
  }

  /** Sends the metrics. Logs failures and never rejects. */
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
