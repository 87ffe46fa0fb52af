/* Only a gateway with a collector loads this file: the exporters are as much as all the rest of the SDK. */

import { diag, propagation, trace } from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import type { PrometheusExporter } from '@opentelemetry/exporter-prometheus'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import type { Resource } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { ObservabilitySettings, SamplerName } from '../config/environment.ts'

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

/** The values of `OTEL_TRACES_SAMPLER`, and the sampler of each. */
const SAMPLERS = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: (share: number) => new TraceIdRatioBasedSampler(share),
  parentbased_always_on: () => new ParentBasedSampler({ root: new AlwaysOnSampler() }),
  parentbased_always_off: () => new ParentBasedSampler({ root: new AlwaysOffSampler() }),
  parentbased_traceidratio: (share: number) =>
    new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) }),
} as const satisfies Record<SamplerName, (share: number) => Sampler>

/** A trace takes about 50 µs, so that this many take 0.5 % of a core, whatever callers request. */
const MAX_TRACES_PER_SECOND = 100

/**
 * Registers traces. It registers no context manager: nothing here reads the active span, and a context manager slows down
 * all asynchronous code. Register one if your own spans shall be children of the call's span.
 */
export function registerTraces(
  { sampler, share }: ObservabilitySettings['traces'],
  resource: Resource,
): TracerProvider {
  const tracers = new TracerProvider({
    resource,
    sampler: sampler ? SAMPLERS[sampler](share) : sampled(share),
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  })
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  trace.setGlobalTracerProvider(tracers)
  return tracers
}

/** Samples the calls that the caller traces, and a share of those without a trace context, at most so many a second. */
function sampled(share: number): Sampler {
  const budget = new TraceBudget()
  const within = (isAsked: () => boolean): Sampler => ({
    shouldSample: () => ({
      decision:
        isAsked() && budget.take() ? SamplingDecision.RECORD_AND_SAMPLED : SamplingDecision.NOT_RECORD,
    }),
    toString: () => `limited to ${MAX_TRACES_PER_SECOND} per second`,
  })
  return new ParentBasedSampler({
    root: within(() => Math.random() < share),
    remoteParentSampled: within(() => true),
  })
}

class TraceBudget {
  #second = -1
  #left = 0

  take(): boolean {
    const second = Math.floor(performance.now() / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#left = MAX_TRACES_PER_SECOND
    }
    if (this.#left === 0) return false
    this.#left--
    return true
  }
}
