/** The chain without limits and billing. */
import { benchConfig, serveChain } from '../chain.ts'

serveChain(benchConfig())
