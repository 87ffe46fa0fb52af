/** The whole chain in memory, with metrics, and traces of one call in a hundred: what the example gateway does by default. */
import { serveObservedChain } from '../observed-chain.ts'

serveObservedChain(0.01)
