import type { JsonObject } from '../../json/index.ts'

export interface ChatToolResult {
  readonly message: JsonObject
  /** Content parts for a user message that follows: the images and files of the result. */
  readonly attachments: readonly JsonObject[]
}

/**
 * Writes the result of a tool. A `tool` message of a chat holds text only, so images and files follow in a user message
 * that names the call.
 *
 * @param parts content parts of a chat message.
 */
export function chatToolResult(callId: string, parts: readonly JsonObject[], failed = false): ChatToolResult {
  const texts = parts.filter(({ type }) => type === 'text').map(({ text }) => String(text))
  const others = parts.filter(({ type }) => type !== 'text')
  const content = (failed ? 'Error: ' : '') + texts.join('\n')
  const label = { type: 'text', text: `Part of the result of ${callId}:` }
  return {
    message: { role: 'tool', tool_call_id: callId, content },
    attachments: others.length > 0 ? [label, ...others] : [],
  }
}
