import { isJsonObject, type JsonObject } from '../../json/index.ts'

/** Keywords whose value is a schema, or a list of schemas. */
const SCHEMAS: ReadonlySet<string> = new Set([
  'additionalProperties',
  'allOf',
  'anyOf',
  'items',
  'oneOf',
  'prefixItems',
])

/** Keywords whose value is a schema for each name. */
const NAMED: ReadonlySet<string> = new Set(['$defs', 'definitions', 'properties'])

/**
 * Returns the schema of a function's arguments with the members that OpenAI demands and Anthropic does not: `properties`,
 * and `items` of each array. They are empty, so that they allow what was allowed before.
 */
export function wholeSchema(schema: unknown): JsonObject {
  return { type: 'object', properties: {}, ...(isJsonObject(schema) && (withItems(schema) as JsonObject)) }
}

function withItems(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withItems)
  if (!isJsonObject(schema)) return schema
  const members = Object.entries(schema).map(([keyword, value]) => {
    if (SCHEMAS.has(keyword)) return [keyword, withItems(value)]
    if (!NAMED.has(keyword) || !isJsonObject(value)) return [keyword, value]
    return [keyword, Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withItems(one)]))]
  })
  const { type, items } = schema
  const isArray = type === 'array' || (Array.isArray(type) && type.includes('array'))
  return { ...Object.fromEntries(members), ...(isArray && items === undefined && { items: {} }) }
}
