import type { JsonObject } from '../../json/index.ts'
import type { LeaveOut } from '../translation.ts'

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

/** Translates `stop`. A blank sequence has no counterpart: Anthropic refuses it. */
export function stopMembers({ stop }: JsonObject, leaveOut: LeaveOut): JsonObject {
  if (stop === undefined || stop === null) return {}
  const all: unknown[] = Array.isArray(stop) ? stop : [stop]
  const sequences = all.filter((sequence) => typeof sequence === 'string' && sequence.trim() !== '')
  if (sequences.length < all.length) leaveOut('stop')
  return sequences.length > 0 ? { stop_sequences: sequences } : {}
}
