import { isJsonObject, type JsonObject } from '../../json/index.ts'
import { effortOf } from '../requests/reasoning-effort.ts'

/**
 * Returns the effort that a chat asks for: in OpenAI's `reasoning_effort`, OpenRouter's `reasoning`, or `thinking`, which
 * LiteLLM, DeepSeek, GLM and Kimi know. A budget counts as the effort that matches it.
 */
export function askedEffort(
  { reasoning_effort: effort, reasoning, thinking }: JsonObject,
  maxTokens: number,
): unknown {
  if (effort !== undefined && effort !== null) return effort
  if (isJsonObject(reasoning)) {
    const { enabled, effort: named, max_tokens: budget } = reasoning
    if (enabled === false) return 'none'
    if (typeof named === 'string') return named
    return enabled === true || typeof budget === 'number' ? effortFor(budget, maxTokens) : undefined
  }
  if (!isJsonObject(thinking)) return undefined
  return thinking.type === 'disabled' ? 'none' : effortFor(thinking.budget_tokens, maxTokens)
}

function effortFor(budget: unknown, maxTokens: number): string {
  return typeof budget === 'number' ? effortOf(budget, maxTokens) : 'medium'
}
