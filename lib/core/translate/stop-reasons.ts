/** Why an answer stopped: Anthropic's word for each of OpenAI's. What is not named here reads `end_turn`. */
const STOP_REASON_BY_FINISH_REASON: Readonly<Record<string, string>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  function_call: 'tool_use',
  content_filter: 'refusal',
}

/**
 * OpenAI's word for each of Anthropic's. What is not named here reads `stop`: also a refusal, which OpenAI tells in
 * `message.refusal` and not in the reason.
 */
const FINISH_REASON_BY_STOP_REASON: Readonly<Record<string, string>> = {
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'tool_calls',
}

/**
 * OpenAI's `finish_reason` as Anthropic's `stop_reason`.
 *
 * @param said what the answer held: some upstreams end a tool call with `stop`, and who waits for a call needs one.
 */
export function stopReasonOf(finishReason: unknown, said: { toolCalls: boolean; refusal: boolean }): string {
  const reason = STOP_REASON_BY_FINISH_REASON[String(finishReason)] ?? 'end_turn'
  if (reason !== 'end_turn' && reason !== 'tool_use') return reason
  if (said.toolCalls) return 'tool_use'
  return said.refusal ? 'refusal' : 'end_turn'
}

/** Anthropic's `stop_reason` as OpenAI's `finish_reason`. */
export function finishReasonOf(stopReason: unknown): string {
  return FINISH_REASON_BY_STOP_REASON[String(stopReason)] ?? 'stop'
}

/** OpenAI tells a refusal in words, Anthropic mostly without. */
const REFUSAL_WITHOUT_WORDS = 'The model declined to answer.'

/** The words of an Anthropic-style refusal. */
export function refusalText(stopDetails: unknown): string {
  const explanation =
    typeof stopDetails === 'object' && stopDetails !== null && 'explanation' in stopDetails
      ? stopDetails.explanation
      : undefined
  return typeof explanation === 'string' && explanation !== '' ? explanation : REFUSAL_WITHOUT_WORDS
}
