import {
  createNoopMeter,
  type Meter,
  type MeterProvider,
  metrics,
  ProxyTracerProvider,
  type Tracer,
  type TracerProvider,
  trace,
} from '@opentelemetry/api'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { callOf } from '../../core/call/index.ts'
import { type Catalog, metricLabelsFault } from '../../core/catalog/index.ts'
import {
  aCatalog,
  aNumber,
  anObject,
  catalogFrom,
  checkOptions,
  type OptionRule,
  type OptionRules,
} from '../../core/options/index.ts'
import { type AttributedCalls, attributedCallsOn } from './attributed-calls.ts'
import { SCOPE } from './attributes.ts'
import { type CallMetrics, callMetricsOn, knownModel, labelsOf } from './call-metrics.ts'
import { CallTrace, keepsContext } from './call-trace.ts'
import { type GatewayStates, observeStates } from './gateway-states.ts'

/** Options of {@link telemetry}. */
export interface TelemetryOptions {
  /**
   * The models and lines that metrics distinguish; a function if they can change while the app runs. Without it,
   * metrics report a model only for calls that `readRequest` has read, and no state of lines.
   */
  catalog?: Catalog | (() => Catalog)
  /** The states to report when metrics are collected. Defaults to none. */
  states?: GatewayStates
  /**
   * Counts calls, tokens and charges by `account`, `key`, `user` or `tag:<name>` too, in counters of their own. Defaults
   * to none.
   */
  labels?: readonly string[]
  /** How many values each of the `labels` has in this process; further ones count as `other`. Defaults to 100. */
  maxLabelValues?: number
}

const RULES: OptionRules<TelemetryOptions> = {
  catalog: aCatalog,
  states: anObject('an object of states, such as { lines }'),
  labels: {
    be: 'a list of "account", "key", "user" and "tag:<name>", whose names differ in letters or digits',
    accepts: (value) => Array.isArray(value) && metricLabelsFault(value) === undefined,
  },
  maxLabelValues: aNumber('a whole number from 1', 1),
}

/** Something that has the member that is read when metrics are collected. */
function having(member: string, be: string): OptionRule {
  return { be, accepts: (value) => (value as Record<string, unknown> | null)?.[member] !== undefined }
}

const STATES: OptionRules<GatewayStates> = {
  lines: having('reading', 'a LineRegistry, such as that of route'),
  pool: having('stats', 'a LeasePool, such as that of billingGuard'),
  callLog: having('queued', 'a CallLogWriter, such as that of callLog'),
  database: having('connections', 'an object with connections()'),
  admin: having('wrongTokens', 'the result of adminAccess'),
  webhooks: having('stats', 'a WebhookSender'),
  budgets: having('refusals', 'a Budgets, such as that of billingGuard'),
  readiness: having('ready', 'an object with ready()'),
  stores: anObject('an object of stores by name, such as { limits: new StoreWatch() }'),
  videos: having('follow', 'a VideoCharges'),
}

/**
 * Records metrics and a trace of every call with OpenTelemetry's API, for whatever SDK the app has registered.
 * Without an SDK it does nothing. A call is recorded once, when it ends; no value that a caller sent becomes a label,
 * unless `labels` names it, and then a bounded number of them.
 *
 * Mount it once, right after `beginCall`: end handlers run in reverse order, so this one then sees how all others
 * ended.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }))
 * app.use(beginCall(), telemetry({ catalog }))
 */
export function telemetry(options: TelemetryOptions = {}): RequestHandler {
  const { catalogNow, states, labels, maxValues } = validate(options)
  let attributed: AttributedCalls | undefined
  const metrics = perMeter((meter) => {
    observeStates(meter, states, catalogNow)
    const calls = callMetricsOn(meter)
    attributed = labels.length > 0 ? attributedCallsOn(meter, { labels, maxValues }) : undefined
    states.videos?.follow(calls, (task, amount) => {
      calls.charge(knownModel(task.model, catalogNow()), amount)
      attributed?.charge(task, amount)
    })
    return calls
  })
  const tracer = registeredTracer()

  return function telemetry(req: Request, _res: Response, next: NextFunction): void {
    const call = callOf(req)
    const beganAt = performance.now()
    let metricsNow: CallMetrics | undefined
    let tracerNow: Tracer | undefined
    /** The trace of the call, if it has to be active while the call runs. */
    let active: CallTrace | undefined
    try {
      metricsNow = metrics.current
      tracerNow = tracer.current
      // Without a context manager no code can ask for the active span, so the span is made at the end, when a sampler
      // can already see the result.
      if (tracerNow && keepsContext()) active = new CallTrace(tracerNow, call, req)
      if (metricsNow || tracerNow) {
        metricsNow?.begin()
        call.onEnd('telemetry', (ended) => {
          const labels = labelsOf(ended, catalogNow())
          metricsNow?.end(ended, labels, performance.now() - beganAt)
          attributed?.note(ended)
          const trace = active ?? (tracerNow && new CallTrace(tracerNow, ended, req))
          trace?.end(ended, labels)
        })
      }
    } catch (error) {
      // A failing SDK loses metrics, but never fails a call.
      active = undefined
      call.logger.error({ err: error, requestId: call.id }, 'telemetry: a call is not recorded')
    }
    if (active) active.run(next)
    else next()
  }
}

function validate(options: TelemetryOptions) {
  checkOptions('telemetry', options, RULES)
  const { catalog, states = {}, labels = [], maxLabelValues: maxValues = 100 } = options
  checkOptions('telemetry: "states"', states, STATES)
  for (const [name, store] of Object.entries(states.stores ?? {})) {
    if (typeof store?.outages !== 'number')
      throw new TypeError(`telemetry: "states.stores.${name}" must report outages, as new StoreWatch() does`)
  }
  const catalogNow = catalog ? catalogFrom(catalog) : (): Catalog | undefined => undefined
  return { catalogNow, states, labels, maxValues }
}

/** The API's defaults while no provider is registered. */
const NO_TRACES = new ProxyTracerProvider().getDelegate()
const NO_METRICS = createNoopMeter()

/** A value made for the registered provider, and made again when another provider is registered. */
class PerProvider<P, T> {
  readonly #registered: () => P
  readonly #make: (provider: P) => T
  #provider: P
  #made: T

  constructor(registered: () => P, make: (provider: P) => T) {
    this.#registered = registered
    this.#make = make
    this.#provider = registered()
    this.#made = make(this.#provider)
  }

  get current(): T {
    const provider = this.#registered()
    if (provider !== this.#provider) {
      this.#provider = provider
      this.#made = this.#make(provider)
    }
    return this.#made
  }
}

/** Makes a value for the registered meter; undefined while there is none. */
function perMeter<T>(make: (meter: Meter) => T): PerProvider<MeterProvider, T | undefined> {
  return new PerProvider(metrics.getMeterProvider.bind(metrics), (provider) => {
    const meter = provider.getMeter(SCOPE)
    return meter === NO_METRICS ? undefined : make(meter)
  })
}

/** Returns the registered tracer; undefined while there is none. */
function registeredTracer(): PerProvider<TracerProvider, Tracer | undefined> {
  return new PerProvider(
    () => {
      const provider = trace.getTracerProvider()
      return provider instanceof ProxyTracerProvider ? provider.getDelegate() : provider
    },
    (provider) => (provider === NO_TRACES ? undefined : provider.getTracer(SCOPE)),
  )
}
