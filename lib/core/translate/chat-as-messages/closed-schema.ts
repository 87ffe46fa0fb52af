import { isJsonObject, type JsonObject } from '../../json/index.ts'

/** Members of a schema that hold a schema, a list of schemas, or schemas by name. */
const WITH_ONE = ['items', 'additionalProperties', 'not']
const WITH_LIST = ['anyOf', 'oneOf', 'allOf', 'prefixItems']
const WITH_NAMED = ['properties', '$defs', 'definitions']

/**
 * Returns a JSON schema in which `additionalProperties` is false wherever it was not set. Anthropic accepts no other
 * schema, and a value that fits the closed schema fits the open one.
 */
export function closedSchema(schema: JsonObject): JsonObject {
  const closed: Record<string, unknown> = { ...schema }
  for (const member of WITH_ONE)
    if (isJsonObject(schema[member])) closed[member] = closedIfSchema(schema[member])
  for (const member of WITH_LIST) {
    const list = schema[member]
    if (Array.isArray(list)) closed[member] = list.map(closedIfSchema)
  }
  for (const member of WITH_NAMED) {
    const named = schema[member]
    if (isJsonObject(named))
      closed[member] = Object.fromEntries(
        Object.entries(named).map(([name, one]) => [name, closedIfSchema(one)]),
      )
  }
  if (schema.type === 'object' && schema.additionalProperties === undefined)
    closed.additionalProperties = false
  return closed
}

function closedIfSchema(value: unknown): unknown {
  return isJsonObject(value) ? closedSchema(value) : value
}
