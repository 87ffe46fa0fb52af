/** The whole chain in memory, with metrics, and a trace of every call. */
import { serveObservedChain } from '../observed-chain.ts'

serveObservedChain(1)
