import { isJsonObject, nonEmptyString } from '../../json/index.ts'
import { isModerated } from '../../operations/index.ts'

/** Anthropic's `stop_reason` for each `finish_reason` of OpenAI; `end_turn` for all others. */
const STOP_REASON_BY_FINISH_REASON: ReadonlyMap<unknown, string> = new Map([
  ['length', 'max_tokens'],
  ['tool_calls', 'tool_use'],
  ['function_call', 'tool_use'],
])

/**
 * OpenAI's `finish_reason` for each `stop_reason` of Anthropic; `stop` for all others. A refusal is one of those: OpenAI
 * reports it in `message.refusal`.
 */
const FINISH_REASON_BY_STOP_REASON: ReadonlyMap<unknown, string> = new Map([
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool_calls'],
])

/**
 * Returns Anthropic's `stop_reason` for OpenAI's `finish_reason`.
 *
 * @param content what the answer holds. Some upstreams end a tool call with `stop`, and without a tool call nothing
 * may end with `tool_use`.
 */
export function stopReasonOf(
  finishReason: unknown,
  content: { toolCalls: boolean; refusal: boolean },
): string {
  if (isModerated(finishReason)) return 'refusal'
  const reason = STOP_REASON_BY_FINISH_REASON.get(finishReason) ?? 'end_turn'
  if (reason !== 'end_turn' && reason !== 'tool_use') return reason
  if (content.toolCalls) return 'tool_use'
  return content.refusal ? 'refusal' : 'end_turn'
}

/** Returns OpenAI's `finish_reason` for Anthropic's `stop_reason`. */
export function finishReasonOf(stopReason: unknown): string {
  return FINISH_REASON_BY_STOP_REASON.get(stopReason) ?? 'stop'
}

/** OpenAI's refusals have a text, Anthropic's mostly have none. */
const DEFAULT_REFUSAL = 'The model declined to answer.'

/** Returns the text of an Anthropic-style refusal. */
export function refusalText(stopDetails: unknown): string {
  const explanation = isJsonObject(stopDetails) ? nonEmptyString(stopDetails.explanation) : undefined
  return explanation ?? DEFAULT_REFUSAL
}
