import type { JsonObject } from '../translation.ts'

/** A tool's result as a chat takes it. */
export interface ChatResult {
  readonly message: JsonObject
  /** Parts of a user's message behind it. */
  readonly shown: readonly JsonObject[]
}

/**
 * A tool's result: a chat's holds text only, so images and files follow as the user's, named by the call.
 *
 * @param parts of a chat message.
 */
export function chatResult(callId: string, parts: readonly JsonObject[], failed = false): ChatResult {
  const texts = parts.filter(({ type }) => type === 'text').map(({ text }) => String(text))
  const others = parts.filter(({ type }) => type !== 'text')
  const content = (failed ? 'Error: ' : '') + texts.join('\n')
  const label = { type: 'text', text: `Part of the result of ${callId}:` }
  return {
    message: { role: 'tool', tool_call_id: callId, content },
    shown: others.length > 0 ? [label, ...others] : [],
  }
}
