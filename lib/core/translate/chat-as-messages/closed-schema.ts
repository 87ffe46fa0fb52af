import { isObject } from '../parts/json-object.ts'
import type { JsonObject } from '../translation.ts'

/** Members that hold a schema, a list of them, or one for each name. */
const HOLD_ONE = ['items', 'additionalProperties', 'not']
const HOLD_LIST = ['anyOf', 'oneOf', 'allOf', 'prefixItems']
const HOLD_NAMED = ['properties', '$defs', 'definitions']

/**
 * The same JSON schema with every object closed that does not say whether it is: Anthropic takes no other, and what fits
 * the closed schema fits the open one.
 */
export function closedSchema(schema: JsonObject): JsonObject {
  const closed: Record<string, unknown> = { ...schema }
  for (const member of HOLD_ONE) if (isObject(schema[member])) closed[member] = closedIfSchema(schema[member])
  for (const member of HOLD_LIST) {
    const list = schema[member]
    if (Array.isArray(list)) closed[member] = list.map(closedIfSchema)
  }
  for (const member of HOLD_NAMED) {
    const named = schema[member]
    if (isObject(named))
      closed[member] = Object.fromEntries(
        Object.entries(named).map(([name, one]) => [name, closedIfSchema(one)]),
      )
  }
  if (schema.type === 'object' && schema.additionalProperties === undefined)
    closed.additionalProperties = false
  return closed
}

function closedIfSchema(value: unknown): unknown {
  return isObject(value) ? closedSchema(value) : value
}
