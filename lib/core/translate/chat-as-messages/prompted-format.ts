import { isJsonObject, type JsonObject } from '../../json/index.ts'
import { fittedSchema } from './fitted-schema.ts'

const INSTRUCTION =
  'Answer with exactly one JSON object. Write nothing before or after it, and do not put it into a code block.'

/** What a chat's `response_format` becomes on an Anthropic-style line. */
export interface MessageFormat {
  /** The format for `output_config`; undefined if the line has none for it. */
  readonly format?: JsonObject
  /** Instructions that ask for what the line has no format for. */
  readonly instruction?: string
}

/**
 * Translates `response_format`. Anthropic-style lines know schemas only: a JSON object without one, or with one that they
 * refuse, is asked for in words.
 *
 * @returns undefined if the format is unknown.
 */
export function messageFormatOf({ response_format: format }: JsonObject): MessageFormat | undefined {
  if (!isJsonObject(format) || format.type === 'text') return {}
  if (format.type !== 'json_object' && format.type !== 'json_schema') return undefined
  // Together, Fireworks and others have the schema in the format itself.
  const { schema } = isJsonObject(format.json_schema) ? format.json_schema : format
  if (!isJsonObject(schema)) return format.type === 'json_object' ? { instruction: INSTRUCTION } : undefined
  const fitted = fittedSchema(schema)
  if (fitted) return { format: { type: 'json_schema', schema: fitted } }
  return {
    instruction: `${INSTRUCTION} It must be valid against this JSON schema:\n${JSON.stringify(schema)}`,
  }
}

/** Whether the answer to a chat is JSON that was asked for in words, which a model may put into a code block all the same. */
export function isPrompted(request: JsonObject): boolean {
  return isJsonObject(request.response_format) && messageFormatOf(request)?.instruction !== undefined
}
