/** The whole chain in memory, with the metrics and traces that the example gateway has by default with a collector. */
import { serveObservedChain } from '../observed-chain.ts'

await serveObservedChain()
