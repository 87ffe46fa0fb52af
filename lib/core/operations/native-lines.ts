import { hasEndpoint, type LineEndpoints } from '../catalog/index.ts'
import type { Operation } from './operation.ts'

/** Returns the name of an operation in the `endpoints` of a line, such as `chat/completions`. */
export function endpointOf({ endpoint, upstreamPath }: Operation): string {
  return endpoint ?? upstreamPath.slice(1)
}

/** Whether a line serves an operation without translation: it has the same protocol and the endpoint. */
export function servesNatively(line: LineEndpoints, operation: Operation): boolean {
  return hasEndpoint(line, operation.protocol, endpointOf(operation))
}
