import { budgetOf, commonEffort } from '../effort.ts'
import { isObject } from '../parts/json-object.ts'
import type { JsonObject } from '../translation.ts'
import type { Turn } from './turns.ts'

/** Models that decide themselves how much to think, by Anthropic's names; those after them take no budget at all. */
const DECIDES_ITSELF = /claude-[a-z]+-(?:4-[6-9](?!\d)|[5-9](?!\d)|[1-9]\d(?!\d))/

/** How much a model is to think. */
export interface Thinking {
  readonly thinking: JsonObject
  /** For `output_config`. */
  readonly effort?: string
}

/** What the wish to think depends on. */
export interface ThinkingFor {
  readonly upstreamModel: string
  readonly maxTokens: number
  readonly turns: readonly Turn[]
  readonly toolChoice: unknown
}

/**
 * A chat's `reasoning_effort` as Anthropic's thinking. Undefined where none is asked for, or where Anthropic allows none:
 * with a forced tool, in an answer that is begun already, and, by budget, behind a tool call without its thinking.
 */
export function thinkingOf(
  effort: unknown,
  { upstreamModel, maxTokens, turns, toolChoice }: ThinkingFor,
): Thinking | undefined {
  const common = commonEffort(effort)
  if (common === undefined || isForced(toolChoice) || turns.at(-1)?.role === 'assistant') return undefined
  if (DECIDES_ITSELF.test(upstreamModel)) return { thinking: { type: 'adaptive' }, effort: common }
  const budget = budgetOf(String(effort), maxTokens)
  if (budget === undefined || lacksThinking(turns)) return undefined
  return { thinking: { type: 'enabled', budget_tokens: budget } }
}

function isForced(choice: unknown): boolean {
  return isObject(choice) && (choice.type === 'any' || choice.type === 'tool')
}

/** Whether the model is to go on behind a tool call whose thinking is not there. */
function lacksThinking(turns: readonly Turn[]): boolean {
  const results = turns.at(-1)?.content.some(({ type }) => type === 'tool_result')
  const first = turns.at(-2)?.content[0]
  return results === true && first?.type !== 'thinking' && first?.type !== 'redacted_thinking'
}
