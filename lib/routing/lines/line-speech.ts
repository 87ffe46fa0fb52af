import type { Line } from '../../core/catalog/index.ts'
import { endpointOf, type Operation, servesNatively } from '../../core/operations/index.ts'
import { translationOf, translationsOf } from '../../core/translate/index.ts'

/** Why a call cannot be put to a line, naming the endpoints that it would need; undefined where it can be. */
export function speechDetail(line: Line, operation: Operation): string | undefined {
  if (servesNatively(line, operation) || translationOf(operation, line)) return undefined
  const others = translationsOf(operation).flatMap(({ to }) => (to.protocol === line.protocol ? [to] : []))
  const missing = (needed: readonly Operation[]): string => `has no ${needed.map(endpointOf).join(', no ')}`
  if (line.protocol === operation.protocol) return missing([operation, ...others])
  const stranger = `speaks ${line.protocol}, the call ${operation.protocol}`
  return others.length > 0 ? `${stranger}; ${missing(others)}` : stranger
}

/** The same for a line that is known not to do. */
export function unfitDetail(line: Line, operation: Operation): string {
  if (line.protocol !== operation.protocol && line.endpoints)
    return `has only ${[...line.endpoints].join(', ')}`
  return speechDetail(line, operation) ?? `has no ${endpointOf(operation)}`
}
