import { isJsonObject, type JsonObject, someObject } from '../../json/index.ts'
import { type AskedEffort, effortName } from '../openai-models.ts'
import { budgetOf, isEffort, isOwnDetail } from '../reasoning.ts'
import { type RequestContext, refuse } from '../translation.ts'
import {
  hasAdaptiveThinking,
  omitsThinking,
  takesDisabledThinking,
  takesEffort,
  thinksByDefault,
} from './claude-models.ts'
import type { Turn } from './conversation.ts'

/** The members of a message request that turn thinking on or off. */
interface Thinking {
  readonly thinking?: JsonObject
  /** The effort for `output_config`. */
  readonly effort?: string
}

/** The facts that thinking depends on, beside the effort. */
interface ThinkingContext extends RequestContext {
  readonly maxTokens: number
  readonly turns: readonly Turn[]
  readonly toolChoice: unknown
}

/**
 * Translates an effort into Anthropic's thinking. Returns undefined if none is asked for or the model lacks the effort, and
 * where Anthropic allows no thinking: with a forced tool, with a prefilled answer, and, by budget, behind a tool call without
 * its thinking.
 */
export function thinkingOf(
  { effort, param }: AskedEffort,
  { upstreamModel, leaveOut = refuse, report, maxTokens, turns, toolChoice }: ThinkingContext,
): Thinking | undefined {
  if (effort === 'none') {
    if (!thinksByDefault(upstreamModel)) return undefined
    if (takesDisabledThinking(upstreamModel)) return { thinking: { type: 'disabled' } }
    report?.(param)
    return { effort: 'low' }
  }
  const isAdaptive = hasAdaptiveThinking(upstreamModel)
  const isLeast = isAdaptive && effort === 'minimal'
  if (!isEffort(effort) || (isAdaptive && !isLeast && !takesEffort(upstreamModel, effort))) {
    leaveOut(param, effortName(effort))
    return undefined
  }
  const budget = isAdaptive ? undefined : budgetOf(effort, maxTokens)
  const isPossible = isAdaptive || (budget !== undefined && !lacksThinking(turns))
  if (!isPossible || isForced(toolChoice) || turns.at(-1)?.role === 'assistant') {
    report?.(param)
    return undefined
  }
  if (!isAdaptive) return { thinking: { type: 'enabled', budget_tokens: budget } }
  if (isLeast) report?.(param)
  const display = omitsThinking(upstreamModel) && { display: 'summarized' }
  return { thinking: { type: 'adaptive', ...display }, effort: isLeast ? 'low' : effort }
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

/** Removes the thinking of Anthropic-style lines, which OpenAI-style lines refuse. */
export function chatWithoutForeign(json: JsonObject): JsonObject {
  const { messages } = json
  if (!Array.isArray(messages)) return json
  return {
    ...json,
    messages: messages.map((message) => (isJsonObject(message) ? cleanMessage(message) : message)),
  }
}

function cleanMessage(message: JsonObject): JsonObject {
  const { reasoning_details: _, reasoning_content: __, ...rest } = message
  return hasForeignThinking(message) ? rest : message
}

/** Whether a message holds thinking of Anthropic-style lines. */
export function hasForeignThinking({ reasoning_details: details }: JsonObject): boolean {
  return someObject(details, isOwnDetail)
}
