import { isObject } from '../parts/json-object.ts'
import { type JsonObject, Untranslatable } from '../translation.ts'

/** OpenAI wants a name; models are not shown it. */
const NAME = 'answer'

/**
 * Anthropic's output format, under its present and its earlier name, as a chat's `response_format`.
 *
 * @throws {Untranslatable} for a format other than a JSON schema.
 */
export function responseFormatOf({ output_config: config, output_format: earlier }: JsonObject): JsonObject {
  const [format, path] =
    isObject(config) && config.format ? [config.format, 'output_config.format'] : [earlier, 'output_format']
  if (format === undefined || format === null) return {}
  if (!isObject(format) || format.type !== 'json_schema' || !isObject(format.schema))
    throw new Untranslatable(path)
  const { schema } = format
  return {
    response_format: { type: 'json_schema', json_schema: { name: NAME, schema, strict: isStrict(schema) } },
  }
}

/** Deeper than this no schema is read by a model. */
const DEEPEST = 100

/**
 * Whether OpenAI can promise a schema: every object in it requires all its properties and allows no others. It refuses
 * to promise any other, where Anthropic does not.
 */
function isStrict(schema: unknown, depth = 0): boolean {
  if (depth > DEEPEST) return false
  if (Array.isArray(schema)) return schema.every((item) => isStrict(item, depth + 1))
  if (!isObject(schema)) return true
  const { properties, required } = schema
  if (schema.type === 'object' || isObject(properties)) {
    const names = isObject(properties) ? Object.keys(properties) : []
    const all = Array.isArray(required) ? required : []
    if (schema.additionalProperties !== false || !names.every((name) => all.includes(name))) return false
  }
  return Object.values(schema).every((value) => isStrict(value, depth + 1))
}
