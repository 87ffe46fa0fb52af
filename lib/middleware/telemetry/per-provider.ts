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

/** What stands behind the API's proxy while nobody has registered a provider. */
const NO_TRACES = new ProxyTracerProvider().getDelegate()
const NO_METRICS = createNoopMeter()

/** What was made for the provider that is registered now; made again where that is another one. */
export class InUse<P, T> {
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

/** What `make` makes of the registered meter; undefined while there is none. */
export function onMeter<T>(make: (meter: Meter) => T): InUse<MeterProvider, T | undefined> {
  return new InUse(
    () => metrics.getMeterProvider(),
    (provider) => {
      const meter = provider.getMeter(SCOPE)
      return meter === NO_METRICS ? undefined : make(meter)
    },
  )
}

/** The registered tracer; undefined while there is none. */
export function registeredTracer(): InUse<TracerProvider, Tracer | undefined> {
  return new InUse(
    () => {
      const provider = trace.getTracerProvider()
      return provider instanceof ProxyTracerProvider ? provider.getDelegate() : provider
    },
    (provider) => (provider === NO_TRACES ? undefined : provider.getTracer(SCOPE)),
  )
}
