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

/** Which calls are traced. */
export interface TraceSettings {
  /**
   * One of {@link SAMPLERS}, as OpenTelemetry defines it. Undefined: calls whose caller traces them, and a share of those
   * whose caller does not say; no more than a hundred in a second.
   */
  readonly sampler: SamplerName | undefined
  /** From 0 to 1; read where the sampler takes one. */
  readonly share: number
}

/** What `OTEL_TRACES_SAMPLER` may say, and what each comes to with a share. */
export const SAMPLERS = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: (share: number) => new TraceIdRatioBasedSampler(share),
  parentbased_always_on: () => new ParentBasedSampler({ root: new AlwaysOnSampler() }),
  parentbased_always_off: () => new ParentBasedSampler({ root: new AlwaysOffSampler() }),
  parentbased_traceidratio: (share: number) =>
    new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(share) }),
} as const satisfies Record<string, (share: number) => Sampler>

export type SamplerName = keyof typeof SAMPLERS

/** A trace takes some 50 µs, most of it to be sent: so many take half a hundredth of a core, whatever callers ask for. */
const MOST_TRACES_PER_SECOND = 100

/**
 * Registers traces. No context manager is: nothing here asks which span is active, and one makes everything that waits
 * dearer. An app whose own spans are to belong to the call's registers one.
 */
export function registerTraces({ sampler, share }: TraceSettings, resource: Resource): SdkTracerProvider {
  const tracers = new SdkTracerProvider({
    resource,
    sampler: sampler ? SAMPLERS[sampler](share) : SAMPLERS.parentbased_always_on(),
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  })
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  trace.setGlobalTracerProvider(sampler ? tracers : someOf(tracers, share))
  return tracers
}

/**
 * Tracers that begin spans of few calls. Whether they do is decided before there is a span: ids, checked attributes and
 * an object for each call that is not traced take 1.4 µs in the SDK, whose samplers are asked behind all that.
 */
function someOf(provider: TracerProvider, share: number): TracerProvider {
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
      const some: Tracer = Object.create(tracer, { startSpan: { value } })
      return some
    },
  }
}

class TraceBudget {
  #second = 0
  #left = 0

  take(): boolean {
    const second = Math.floor(performance.now() / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#left = MOST_TRACES_PER_SECOND
    }
    if (this.#left === 0) return false
    this.#left--
    return true
  }
}
