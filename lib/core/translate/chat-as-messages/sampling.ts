import { isJsonObject, type JsonObject } from '../../json/index.ts'
import { Untranslatable } from '../translation.ts'
import { closedSchema } from './closed-schema.ts'

/** The smallest `top_p` that Anthropic accepts together with thinking. */
const MIN_TOP_P_WHILE_THINKING = 0.95

/**
 * Translates the sampling members into Anthropic's range. Its newer models accept only one of `temperature` and `top_p`,
 * and with thinking only a high `top_p`.
 */
export function samplingMembers(
  { temperature, top_p: topP, top_k: topK }: JsonObject,
  hasThinking: boolean,
): JsonObject {
  if (hasThinking) return typeof topP === 'number' && topP >= MIN_TOP_P_WHILE_THINKING ? { top_p: topP } : {}
  const bounded = typeof temperature === 'number' ? { temperature: Math.min(1, temperature) } : undefined
  return {
    ...(bounded ?? (typeof topP === 'number' && { top_p: topP })),
    ...(typeof topK === 'number' && { top_k: topK }),
  }
}

/** @throws {Untranslatable} if a sequence is blank, which Anthropic refuses. */
export function stopMembers({ stop }: JsonObject): JsonObject {
  if (stop === undefined || stop === null) return {}
  const sequences: unknown[] = Array.isArray(stop) ? stop : [stop]
  if (!sequences.every((sequence) => typeof sequence === 'string' && sequence.trim() !== ''))
    throw new Untranslatable('stop')
  return sequences.length > 0 ? { stop_sequences: sequences } : {}
}

/** @throws {Untranslatable} if the format has no schema. */
export function formatOf({ response_format: format }: JsonObject): JsonObject | undefined {
  if (!isJsonObject(format) || format.type === 'text') return undefined
  const described = isJsonObject(format.json_schema) ? format.json_schema : {}
  if (format.type !== 'json_schema' || !isJsonObject(described.schema))
    throw new Untranslatable('response_format')
  return { type: 'json_schema', schema: closedSchema(described.schema) }
}
