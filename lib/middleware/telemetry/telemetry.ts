import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { callOf } from '../../core/call/index.ts'
import type { Catalog } from '../../core/catalog/index.ts'
import { knownModel, labelsOf } from './call-labels.ts'
import { callMetricsOn } from './call-metrics.ts'
import { CallTrace, keepsContext } from './call-trace.ts'
import { type GatewayStates, observeStates } from './gateway-states.ts'
import { onMeter, registeredTracer } from './in-use.ts'

/** Options of {@link telemetry}. */
export interface TelemetryOptions {
  /**
   * The models and lines that metrics tell apart; a function where they can change while the app runs. Defaults to none:
   * a model is told only of calls that `readRequest` has read, and no state of a line.
   */
  catalog?: Catalog | (() => Catalog)
  /** What is read whenever metrics are collected. Defaults to nothing. */
  states?: GatewayStates
}

/**
 * Metrics and a trace of every call, through OpenTelemetry's API: they go to whatever SDK the app has registered there.
 * Without one it does nothing, at no cost. What a call was is recorded once, when it ends; nothing a caller sends becomes a
 * label as it was sent.
 *
 * Mount it once, right behind `beginCall`: what is registered first runs last, so that it knows how all others ended.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }))
 * app.use(beginCall(), telemetry({ catalog }))
 */
export function telemetry(options: TelemetryOptions = {}): RequestHandler {
  const { catalogNow, states } = validate(options)
  const metrics = onMeter((meter) => {
    observeStates(meter, states, catalogNow)
    const calls = callMetricsOn(meter)
    states.videos?.follow(calls, (model, amount) => calls.charge(knownModel(model, catalogNow()), amount))
    return calls
  })
  const tracer = registeredTracer()

  return function telemetry(req: Request, _res: Response, next: NextFunction): void {
    const metricsNow = metrics.current
    const tracerNow = tracer.current
    if (!metricsNow && !tracerNow) {
      next()
      return
    }
    const call = callOf(req)
    const beganAt = performance.now()
    // Where nobody can ask which span is active, there need be none before the end, which then knows of no sampled one.
    const active = tracerNow && keepsContext() ? new CallTrace(tracerNow, call, req) : undefined
    metricsNow?.begin()
    call.onEnd('telemetry', () => {
      const labels = labelsOf(call, catalogNow())
      metricsNow?.end(call, labels, performance.now() - beganAt)
      const trace = active ?? (tracerNow && new CallTrace(tracerNow, call, req))
      trace?.end(call, labels)
    })
    if (active) active.run(next)
    else next()
  }
}

function validate({ catalog, states = {} }: TelemetryOptions) {
  if (catalog !== undefined && typeof catalog !== 'function' && typeof catalog?.models?.has !== 'function') {
    throw new TypeError('telemetry: "catalog" must be a catalogue, such as loadConfig(json).catalog')
  }
  for (const [name, store] of Object.entries(states.stores ?? {})) {
    if (typeof store?.outages !== 'number')
      throw new TypeError(`telemetry: "states.stores.${name}" must tell outages, as new StoreWatch() does`)
  }
  const catalogNow = typeof catalog === 'function' ? catalog : (): Catalog | undefined => catalog
  return { catalogNow, states }
}
