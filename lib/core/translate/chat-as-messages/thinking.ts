import { isJsonObject, type JsonObject } from '../../json/index.ts'
import { budgetOf, commonEffort } from '../requests/reasoning-effort.ts'
import {
  hasAdaptiveThinking,
  omitsThinking,
  takesDisabledThinking,
  thinksByDefault,
} from './claude-models.ts'
import type { Turn } from './turns.ts'

/** The members of a message request that turn thinking on or off. */
export interface Thinking {
  readonly thinking?: JsonObject
  /** The effort for `output_config`. */
  readonly effort?: string
}

/** What thinking depends on, beside the effort. */
export interface ThinkingContext {
  readonly upstreamModel: string
  readonly maxTokens: number
  readonly turns: readonly Turn[]
  readonly toolChoice: unknown
}

/**
 * Translates `reasoning_effort` into Anthropic's thinking. Returns undefined if the request says nothing of it or Anthropic
 * allows none: with a forced tool, with a prefilled answer, and, by budget, behind a tool call without its thinking.
 */
export function thinkingOf(
  effort: unknown,
  { upstreamModel, maxTokens, turns, toolChoice }: ThinkingContext,
): Thinking | undefined {
  if (effort === 'none' && thinksByDefault(upstreamModel)) return leastOf(upstreamModel)
  const common = commonEffort(effort)
  if (common === undefined || isForced(toolChoice) || turns.at(-1)?.role === 'assistant') return undefined
  if (hasAdaptiveThinking(upstreamModel)) {
    const display = omitsThinking(upstreamModel) && { display: 'summarized' }
    return { thinking: { type: 'adaptive', ...display }, effort: common }
  }
  const budget = budgetOf(String(effort), maxTokens)
  if (budget === undefined || lacksThinking(turns)) return undefined
  return { thinking: { type: 'enabled', budget_tokens: budget } }
}

/** Returns the least thinking that a model can be told. */
function leastOf(upstreamModel: string): Thinking {
  return takesDisabledThinking(upstreamModel) ? { thinking: { type: 'disabled' } } : { effort: 'low' }
}

function isForced(choice: unknown): boolean {
  return isJsonObject(choice) && (choice.type === 'any' || choice.type === 'tool')
}

/** Whether the model continues behind a tool call whose thinking is missing. */
function lacksThinking(turns: readonly Turn[]): boolean {
  const results = turns.at(-1)?.content.some(({ type }) => type === 'tool_result')
  const first = turns.at(-2)?.content[0]
  return results === true && first?.type !== 'thinking' && first?.type !== 'redacted_thinking'
}
