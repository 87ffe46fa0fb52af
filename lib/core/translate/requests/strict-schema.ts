import { isJsonObject } from '../../json/index.ts'

/** Most levels of a schema that are checked. */
const MAX_DEPTH = 100

/**
 * Whether OpenAI accepts a schema as strict: each object requires all its properties and allows no others. OpenAI refuses
 * any other schema with `strict`, Anthropic accepts it.
 */
export function isStrict(schema: unknown, depth = 0): boolean {
  if (depth > MAX_DEPTH) return false
  if (Array.isArray(schema)) return schema.every((item) => isStrict(item, depth + 1))
  if (!isJsonObject(schema)) return true
  const { properties, required } = schema
  if (schema.type === 'object' || isJsonObject(properties)) {
    const names = isJsonObject(properties) ? Object.keys(properties) : []
    const all: readonly unknown[] = Array.isArray(required) ? required : []
    // OpenAI refuses to require what is no property, too.
    if (schema.additionalProperties !== false || all.length !== names.length) return false
    const needed = new Set(all)
    if (!names.every((name) => needed.has(name))) return false
  }
  return Object.values(schema).every((value) => isStrict(value, depth + 1))
}
