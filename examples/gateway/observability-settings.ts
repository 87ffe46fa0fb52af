import { numberIn } from './number-setting.ts'

export interface ObservabilitySettings {
  /**
   * Whether to send metrics and traces to a collector over OTLP. The exporters read its address and protocol from the
   * environment, such as `OTEL_EXPORTER_OTLP_ENDPOINT`.
   */
  readonly toCollector: boolean
  readonly traces: TraceSettings
}

export interface TraceSettings {
  /**
   * As OpenTelemetry defines it. Undefined: calls that the caller traces, and a share of all others without a trace context,
   * at most 100 per second.
   */
  readonly sampler: SamplerName | undefined
  /** The share of traced calls, from 0 to 1, for samplers that take one. */
  readonly share: number
}

/** The values of `OTEL_TRACES_SAMPLER`. */
const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const

export type SamplerName = (typeof SAMPLERS)[number]

/** The default share of traced calls: a trace takes several times as long as all metrics of a call. */
const TRACE_SHARE = 0.01

/** Reads the settings from the environment, and adds a fault for each invalid variable. */
export function readObservability(env: NodeJS.ProcessEnv, faults: string[]): ObservabilitySettings {
  const collector = env.OTEL_EXPORTER_OTLP_ENDPOINT || undefined
  // Without the value, because a URL may hold a password.
  if (collector !== undefined && !/^https?:\/\/./.test(collector))
    faults.push('OTEL_EXPORTER_OTLP_ENDPOINT: must be "http://…" or "https://…"')
  return { toCollector: collector !== undefined, traces: readTraces(env, faults) }
}

function readTraces(env: NodeJS.ProcessEnv, faults: string[]): TraceSettings {
  const sampler = env.OTEL_TRACES_SAMPLER || undefined
  // With a configured sampler, the default is that of OpenTelemetry.
  const share = numberIn(env.OTEL_TRACES_SAMPLER_ARG || `${sampler === undefined ? TRACE_SHARE : 1}`)
  if (!(share >= 0 && share <= 1))
    faults.push(`OTEL_TRACES_SAMPLER_ARG: must be a share from 0 to 1, such as ${TRACE_SHARE}`)
  if (sampler === undefined || isSampler(sampler)) return { sampler, share }
  faults.push(`OTEL_TRACES_SAMPLER: must be one of ${SAMPLERS.join(', ')}`)
  return { sampler: undefined, share }
}

function isSampler(name: string): name is SamplerName {
  return (SAMPLERS as readonly string[]).includes(name)
}
