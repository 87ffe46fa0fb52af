/** The whole chain in memory, with metrics, and a trace of every call. */
import { serveObservedChain } from '../observed-chain.ts'

await serveObservedChain({ OTEL_TRACES_SAMPLER: 'parentbased_always_on' })
