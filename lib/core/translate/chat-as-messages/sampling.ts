import { isObject } from '../parts/json-object.ts'
import { type JsonObject, Untranslatable } from '../translation.ts'
import { closedSchema } from './closed-schema.ts'

/** Below this a model that thinks takes no `top_p`. */
const LEAST_TOP_P_WHILE_THINKING = 0.95

/**
 * Temperature and its kin, in Anthropic's range. Its newer models take only one of `temperature` and `top_p`, and while
 * they think hardly any.
 */
export function samplingMembers(
  { temperature, top_p: topP, top_k: topK }: JsonObject,
  thinks: boolean,
): JsonObject {
  if (thinks) return typeof topP === 'number' && topP >= LEAST_TOP_P_WHILE_THINKING ? { top_p: topP } : {}
  const heat = typeof temperature === 'number' ? { temperature: Math.min(1, temperature) } : undefined
  return {
    ...(heat ?? (typeof topP === 'number' && { top_p: topP })),
    ...(typeof topK === 'number' && { top_k: topK }),
  }
}

/** @throws {Untranslatable} where a sequence is blank: Anthropic takes none that is. */
export function stopMembers({ stop }: JsonObject): JsonObject {
  if (stop === undefined || stop === null) return {}
  const sequences: unknown[] = Array.isArray(stop) ? stop : [stop]
  if (!sequences.every((sequence) => typeof sequence === 'string' && sequence.trim() !== ''))
    throw new Untranslatable('stop')
  return sequences.length > 0 ? { stop_sequences: sequences } : {}
}

/** @throws {Untranslatable} for a format without a schema. */
export function formatOf({ response_format: format }: JsonObject): JsonObject | undefined {
  if (!isObject(format) || format.type === 'text') return undefined
  const described = isObject(format.json_schema) ? format.json_schema : {}
  if (format.type !== 'json_schema' || !isObject(described.schema))
    throw new Untranslatable('response_format')
  return { type: 'json_schema', schema: closedSchema(described.schema) }
}
