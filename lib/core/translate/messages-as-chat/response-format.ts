import { isJsonObject, type JsonObject } from '../../json/index.ts'
import { Untranslatable } from '../translation.ts'

/** OpenAI demands a name for a schema; models do not see it. */
const NAME = 'answer'

/**
 * Translates Anthropic's output format, under its current or its earlier name, into `response_format`.
 *
 * @throws {Untranslatable} if the format is not a JSON schema.
 */
export function responseFormatOf({ output_config: config, output_format: earlier }: JsonObject): JsonObject {
  const [format, path] =
    isJsonObject(config) && config.format
      ? [config.format, 'output_config.format']
      : [earlier, 'output_format']
  if (format === undefined || format === null) return {}
  if (!isJsonObject(format) || format.type !== 'json_schema' || !isJsonObject(format.schema))
    throw new Untranslatable(path)
  const { schema } = format
  return {
    response_format: { type: 'json_schema', json_schema: { name: NAME, schema, strict: isStrict(schema) } },
  }
}

/** Most levels of a schema that are checked. */
const MAX_DEPTH = 100

/**
 * Whether OpenAI accepts a schema as strict: each object requires all its properties and allows no others. OpenAI refuses
 * any other schema with `strict`, Anthropic accepts it.
 */
function isStrict(schema: unknown, depth = 0): boolean {
  if (depth > MAX_DEPTH) return false
  if (Array.isArray(schema)) return schema.every((item) => isStrict(item, depth + 1))
  if (!isJsonObject(schema)) return true
  const { properties, required } = schema
  if (schema.type === 'object' || isJsonObject(properties)) {
    const names = isJsonObject(properties) ? Object.keys(properties) : []
    const all = Array.isArray(required) ? required : []
    if (schema.additionalProperties !== false || !names.every((name) => all.includes(name))) return false
  }
  return Object.values(schema).every((value) => isStrict(value, depth + 1))
}
