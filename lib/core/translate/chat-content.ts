import { isJsonObject, type JsonObject, nonEmptyString, objectsIn } from '../json/index.ts'
import { type ReasoningMember, reasoningOrDetails } from './reasoning.ts'

/** The words of a chat message, and how many of its parts no other protocol has. */
export interface ChatContent {
  readonly text: string
  readonly reasoning: string
  /** The member that holds the reasoning. */
  readonly member: ReasoningMember
  readonly skipped: number
}

/** Returns the tool calls of a chat message. Some upstreams write a call in its old form, instead of this one or beside it. */
export function callsOf({ tool_calls: calls, function_call: old }: JsonObject): JsonObject[] {
  const current = objectsIn(calls)
  return current.length > 0 || !isJsonObject(old) ? current : [{ type: 'function', function: old }]
}

/** Reads the content of a chat message; some upstreams send it, and the reasoning, in parts. */
export function readChatContent(message: JsonObject): ChatContent {
  const { content, audio, images } = message
  const { text: ofMember, member } = reasoningOrDetails(message)
  let reasoning = ofMember
  let text = nonEmptyString(content) ?? ''
  let skipped = (isJsonObject(audio) ? 1 : 0) + objectsIn(images).length
  for (const part of objectsIn(content)) {
    if (part.type === 'text') text += nonEmptyString(part.text) ?? ''
    else if (part.type === 'thinking')
      for (const item of objectsIn(part.thinking)) reasoning += nonEmptyString(item.text) ?? ''
    else skipped++
  }
  return { text, reasoning, member, skipped }
}

export interface ChatToolResult {
  readonly message: JsonObject
  /** Content parts for a user message that follows: the images and files of the result. */
  readonly attachments: readonly JsonObject[]
}

/**
 * Writes the result of a tool. A `tool` message of a chat holds text only, so images and files follow in a user message
 * that names the call.
 *
 * @param call.id the id of the call in the message.
 * @param call.label its id on the line.
 * @param parts content parts of a chat message.
 */
export function chatToolResult(
  call: { readonly id: string; readonly label: string },
  parts: readonly JsonObject[],
  failed = false,
): ChatToolResult {
  const texts = parts.filter(({ type }) => type === 'text').map(({ text }) => String(text))
  const others = parts.filter(({ type }) => type !== 'text')
  const content = (failed ? 'Error: ' : '') + texts.join('\n')
  const label = { type: 'text', text: `Part of the result of ${call.label}:` }
  return {
    message: { role: 'tool', tool_call_id: call.id, content },
    attachments: others.length > 0 ? [label, ...others] : [],
  }
}

/** The content of a base64 `data:` URL. */
export interface DataUrl {
  readonly mediaType: string
  readonly data: string
}

/** Longer than any meaningful `data:…;base64` prefix; bounds the search for the comma. */
const MAX_PREFIX_LENGTH = 200

/** Reads a base64 `data:` URL; returns undefined for any other URL. */
export function readDataUrl(url: string): DataUrl | undefined {
  const comma = url.slice(0, MAX_PREFIX_LENGTH).indexOf(',')
  if (comma < 0) return undefined
  const prefix = /^data:([^;,]*)(?:;[^;,]*)*;base64$/i.exec(url.slice(0, comma))
  return prefix ? { mediaType: (prefix[1] ?? '').toLowerCase(), data: url.slice(comma + 1) } : undefined
}

export function dataUrl({ mediaType, data }: DataUrl): string {
  return `data:${mediaType};base64,${data}`
}
