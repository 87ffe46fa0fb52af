/** The chain without limits and billing. */
import { serveChain } from '../chain.ts'

serveChain()
