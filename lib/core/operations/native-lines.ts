import { hasEndpoint, type LineEndpoints } from '../catalog/index.ts'
import type { Operation } from './operation.ts'

/** The name of an operation's endpoint, as a line's `endpoints` list it: `chat/completions`. */
export function endpointOf({ endpoint, upstreamPath }: Operation): string {
  return endpoint ?? upstreamPath.slice(1)
}

/** Whether a line serves an operation as it is: it speaks its protocol and has its endpoint. */
export function servesNatively(line: LineEndpoints, operation: Operation): boolean {
  return hasEndpoint(line, operation.protocol, endpointOf(operation))
}
