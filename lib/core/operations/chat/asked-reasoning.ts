import { isJsonObject, type JsonObject } from '../../json/index.ts'

export interface AskedReasoning {
  /** The member that says so. */
  readonly param: 'reasoning_effort' | 'reasoning' | 'thinking'
  /** The effort by its name, `none` included. Absent: that of the budget, or any. */
  readonly effort?: unknown
  readonly budget?: unknown
}

/**
 * Reads OpenAI's `reasoning_effort`, OpenRouter's `reasoning`, or `thinking`, which LiteLLM, DeepSeek, GLM and Kimi know: the
 * first that is there. Returns undefined if nothing is said.
 */
export function askedReasoning({
  reasoning_effort: given,
  reasoning,
  thinking,
}: JsonObject): AskedReasoning | undefined {
  if (given !== undefined && given !== null && given !== '')
    return { param: 'reasoning_effort', effort: given }
  if (isJsonObject(reasoning)) {
    const { enabled, effort, max_tokens: budget } = reasoning
    const param = 'reasoning'
    if (enabled === false) return { param, effort: 'none' }
    if (typeof effort === 'string') return { param, effort }
    return enabled === true || typeof budget === 'number' ? { param, budget } : undefined
  }
  if (!isJsonObject(thinking)) return undefined
  const param = 'thinking'
  return thinking.type === 'disabled' ? { param, effort: 'none' } : { param, budget: thinking.budget_tokens }
}
