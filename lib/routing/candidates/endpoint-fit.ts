import type { Line } from '../../core/catalog/index.ts'
import { endpointOf, servesNatively } from '../../core/operations/by-path.ts'
import type { Operation } from '../../core/operations/operation.ts'
import { translationOf, translationsOf } from '../../core/translate/index.ts'

/** Returns why a line cannot serve an operation, with the endpoints that it would need; undefined if it can. */
export function missingEndpoint(line: Line, operation: Operation): string | undefined {
  if (servesNatively(line, operation) || translationOf(operation, line)) return undefined
  const others = translationsOf(operation).flatMap(({ to }) => (to.protocol === line.protocol ? [to] : []))
  const missing = (needed: readonly Operation[]): string => `has no ${needed.map(endpointOf).join(', no ')}`
  if (line.protocol === operation.protocol) return missing([operation, ...others])
  const foreign = `line uses ${line.protocol}, the call ${operation.protocol}`
  return others.length > 0 ? `${foreign}; ${missing(others)}` : foreign
}

/** Returns why a line that is known not to serve an operation does not. */
export function missingEndpointOf(line: Line, operation: Operation): string {
  if (line.protocol !== operation.protocol && line.endpoints)
    return `has only ${[...line.endpoints].join(', ')}`
  return missingEndpoint(line, operation) ?? `has no ${endpointOf(operation)}`
}
