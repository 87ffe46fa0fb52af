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
import { SCOPE } from './attributes.ts'

/** The API's defaults while no provider is registered. */
const NO_TRACES = new ProxyTracerProvider().getDelegate()
const NO_METRICS = createNoopMeter()

/** A value made for the registered provider, and made again when another provider is registered. */
export class PerProvider<P, T> {
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
export function perMeter<T>(make: (meter: Meter) => T): PerProvider<MeterProvider, T | undefined> {
  return new PerProvider(metrics.getMeterProvider.bind(metrics), (provider) => {
    const meter = provider.getMeter(SCOPE)
    return meter === NO_METRICS ? undefined : make(meter)
  })
}

/** Returns the registered tracer; undefined while there is none. */
export function registeredTracer(): PerProvider<TracerProvider, Tracer | undefined> {
  return new PerProvider(
    () => {
      const provider = trace.getTracerProvider()
      return provider instanceof ProxyTracerProvider ? provider.getDelegate() : provider
    },
    (provider) => (provider === NO_TRACES ? undefined : provider.getTracer(SCOPE)),
  )
}
