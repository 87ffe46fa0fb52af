import type { Line } from '../../core/catalog/index.ts'
import { endpointOf, type Operation, servesNatively } from '../../core/operations/index.ts'
import { translationOf, translationsOf } from '../../core/translate/index.ts'

/** Tells why a line cannot serve an operation, naming the endpoints that it would need; undefined where it can. */
export function missingEndpoint(line: Line, operation: Operation): string | undefined {
  if (servesNatively(line, operation) || translationOf(operation, line)) return undefined
  const others = translationsOf(operation).flatMap(({ to }) => (to.protocol === line.protocol ? [to] : []))
  const missing = (needed: readonly Operation[]): string => `has no ${needed.map(endpointOf).join(', no ')}`
  if (line.protocol === operation.protocol) return missing([operation, ...others])
  const foreign = `speaks ${line.protocol}, the call ${operation.protocol}`
  return others.length > 0 ? `${foreign}; ${missing(others)}` : foreign
}

/** Tells the same of a line that is known not to serve the operation. */
export function missingEndpointOf(line: Line, operation: Operation): string {
  if (line.protocol !== operation.protocol && line.endpoints)
    return `has only ${[...line.endpoints].join(', ')}`
  return missingEndpoint(line, operation) ?? `has no ${endpointOf(operation)}`
}
