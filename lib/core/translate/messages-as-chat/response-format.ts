import { isJsonObject, type JsonObject } from '../../json/index.ts'
import { isStrict } from '../requests/strict-schema.ts'
import type { LeaveOut } from '../translation.ts'

/** OpenAI demands a name for a schema; models do not see it. */
const NAME = 'answer'

/**
 * Translates Anthropic's output format, under its current or its earlier name, into `response_format`.
 * A format that is not a JSON schema has no counterpart.
 */
export function responseFormatOf(
  { output_config: config, output_format: earlier }: JsonObject,
  leaveOut: LeaveOut,
): JsonObject {
  const [format, path] =
    isJsonObject(config) && config.format
      ? [config.format, 'output_config.format']
      : [earlier, 'output_format']
  if (format === undefined || format === null) return {}
  if (!isJsonObject(format) || format.type !== 'json_schema' || !isJsonObject(format.schema)) {
    leaveOut(path)
    return {}
  }
  const { schema } = format
  return {
    response_format: { type: 'json_schema', json_schema: { name: NAME, schema, strict: isStrict(schema) } },
  }
}
