import { isJsonObject, isText, tokenCount } from '../json/index.ts'

type Request = Readonly<Record<string, unknown>>

/** The stop reasons that explain nothing: a regular end, and failures that only the upstream can explain. */
const UNEXPLAINED: ReadonlySet<unknown> = new Set([
  undefined,
  null,
  '',
  'stop',
  'end_turn',
  'completed',
  'eos',
  'eos_token',
  'in_progress',
  'queued',
  'error',
  'abort',
  'network_error',
  'insufficient_system_resource',
  // Gemini's, for a tool call of the model that it could not read.
  'function_call_filter: MALFORMED_FUNCTION_CALL',
])

/** The end of an answer that has no output. */
export interface EndWithoutOutput {
  readonly stopReason: unknown
  readonly usage: unknown
}

/**
 * Returns whether there is a reason for an answer without output. It was cut by its maximum, it met the caller's own
 * stop sequence, it reasoned only, none was asked for, or there was nothing to say after a tool's result.
 *
 * @param request the caller's body, of whatever endpoint.
 */
export function explainsNoOutput({ stopReason, usage }: EndWithoutOutput, request: Request): boolean {
  if (!UNEXPLAINED.has(stopReason)) return true
  // OpenAI tells a stop sequence and the regular end by the same reason.
  if (stopReason === 'stop' && (hasStops(request.stop) || hasStops(request.stop_sequences))) return true
  // A caller may ask for no output in order to fill the upstream's prompt cache.
  if (request.max_tokens === 0) return true
  return reasoned(usage) || followsToolResult(request)
}

/** Whether moderation ended an answer, by its stop reason; some upstreams add what for. */
export function isModerated(stopReason: unknown): boolean {
  return typeof stopReason === 'string' && MODERATED.test(stopReason)
}

const MODERATED = /^(?:content_filter|guardrail_intervened|sensitive$|safety$)/i

function hasStops(stop: unknown): boolean {
  return isText(stop) || (Array.isArray(stop) && stop.length > 0)
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
