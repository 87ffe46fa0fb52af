import {
  type Context,
  context,
  INVALID_SPAN_CONTEXT,
  propagation,
  type SpanOptions,
  TraceFlags,
  type Tracer,
  type TracerProvider,
  trace,
} from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import type { Resource } from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TracerProvider as SdkTracerProvider,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace'
import type { SamplerName, TraceSettings } from './observability-settings.ts'

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
export function registerTraces({ sampler, share }: TraceSettings, resource: Resource): SdkTracerProvider {
  const tracers = new SdkTracerProvider({
    resource,
    sampler: sampler ? SAMPLERS[sampler](share) : SAMPLERS.parentbased_always_on(),
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  })
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  trace.setGlobalTracerProvider(sampler ? tracers : sampled(tracers, share))
  return tracers
}

/**
 * Returns tracers that begin spans for a share of calls. The decision is made before the SDK creates a span: ids, attributes
 * and an object for each untraced call take 1.4 µs in the SDK, which asks its samplers after that.
 */
function sampled(provider: TracerProvider, share: number): TracerProvider {
  const none = trace.wrapSpanContext(INVALID_SPAN_CONTEXT)
  const budget = new TraceBudget()
  const begins = (within: Context): boolean => {
    const parent = trace.getSpanContext(within)
    if (!parent) return Math.random() < share && budget.take()
    return !parent.isRemote || ((parent.traceFlags & TraceFlags.SAMPLED) !== 0 && budget.take())
  }
  return {
    getTracer(name, version, options) {
      const tracer = provider.getTracer(name, version, options)
      const value = (span: string, how?: SpanOptions, within = context.active()) =>
        begins(within) ? tracer.startSpan(span, how, within) : none
      const wrapped: Tracer = Object.create(tracer, { startSpan: { value } })
      return wrapped
    },
  }
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
