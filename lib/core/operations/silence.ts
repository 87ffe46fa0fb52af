import { isJsonObject, tokenCount } from '../json/index.ts'

type Request = Readonly<Record<string, unknown>>

/** The stop reasons that explain an answer without output: cut by a maximum, a stop sequence, or a pause. */
const REASONS: ReadonlySet<unknown> = new Set([
  'length',
  'max_tokens',
  'max_output_tokens',
  'model_length',
  'model_context_window_exceeded',
  'incomplete',
  'stop_sequence',
  'pause_turn',
])

/** The end of an answer that has no output. */
export interface SilentEnd {
  readonly stopReason: unknown
  readonly usage: unknown
}

/**
 * Returns whether there is a reason for an answer without output. It was cut by its maximum, it met the caller's own
 * stop sequence, it reasoned only, or there was nothing to say after a tool's result.
 *
 * @param request the body that the answer is for.
 */
export function isExpectedSilence({ stopReason, usage }: SilentEnd, request: Request): boolean {
  if (REASONS.has(stopReason)) return true
  // The protocol tells a stop sequence and the regular end by the same reason.
  if (stopReason === 'stop' && hasStops(request)) return true
  return reasoned(usage) || followsToolResult(request)
}

function hasStops({ stop }: Request): boolean {
  return (typeof stop === 'string' && stop !== '') || (Array.isArray(stop) && stop.length > 0)
}

function reasoned(usage: unknown): boolean {
  if (!isJsonObject(usage)) return false
  for (const details of [usage.completion_tokens_details, usage.output_tokens_details, usage]) {
    if (!isJsonObject(details)) continue
    if ((tokenCount(details.reasoning_tokens) ?? tokenCount(details.thinking_tokens) ?? 0) > 0) return true
  }
  return false
}

/** Whether the last turn of a conversation is the result of a tool. */
function followsToolResult({ messages, input }: Request): boolean {
  const last: unknown = Array.isArray(messages)
    ? messages.at(-1)
    : Array.isArray(input)
      ? input.at(-1)
      : undefined
  if (!isJsonObject(last)) return false
  const { role, type, content } = last
  if (role === 'tool' || role === 'function') return true
  if (typeof type === 'string' && type.endsWith('_output')) return true
  return Array.isArray(content) && content.some((block) => isJsonObject(block) && isToolResult(block.type))
}

function isToolResult(type: unknown): boolean {
  return typeof type === 'string' && type.endsWith('tool_result')
}
