import { isJsonObject, type JsonObject, nonEmptyString, tokenCount } from '../../json/index.ts'

/** The `format` of details that come from an Anthropic-style line; other upstreams use other formats. */
export const DETAIL_FORMAT = 'anthropic-claude-v1'

/**
 * An entry of `reasoning_details`. A chat message carries the thinking blocks of an Anthropic-style line as text in
 * `reasoning_content` and, for each block in order, an entry with what the line needs to get back unchanged.
 */
export interface ReasoningDetail {
  readonly type: 'reasoning.text' | 'reasoning.encrypted'
  readonly format: typeof DETAIL_FORMAT
  readonly index: number
  /**
   * The length of this block's text in `reasoning_content`, in UTF-16 units. A stream sends the text before the
   * signature and does not store it, so that the block is put together again from `reasoning_content`.
   */
  readonly length: number
  /** The signature of a text block. */
  readonly signature?: string
  /** The data of an encrypted block. */
  readonly data?: string
}

/**
 * Replaces Anthropic's signature in what was made from an OpenAI-style line's answer. No Anthropic-style line accepts it;
 * it marks text that may go back to an OpenAI-style line.
 */
export const UNSIGNED = 'unsigned:openai-style-line'

/** The members in which OpenAI-style lines send reasoning. A line accepts it back in its own member only. */
export type ReasoningMember = 'reasoning_content' | 'reasoning'

/** Returns the replacement signature for reasoning that came in a member. */
export function unsignedOf(member: ReasoningMember): string {
  return member === 'reasoning' ? `${UNSIGNED}:${member}` : UNSIGNED
}

/** Returns the member for a replacement signature; undefined for a signature of an Anthropic-style line. */
export function memberOf(signature: unknown): ReasoningMember | undefined {
  if (signature === UNSIGNED) return 'reasoning_content'
  return signature === unsignedOf('reasoning') ? 'reasoning' : undefined
}

/** Returns the reasoning of a chat message or delta, and the member that holds it. */
export function reasoningIn(message: JsonObject): { text: string; member: ReasoningMember } {
  const content = nonEmptyString(message.reasoning_content)
  if (content !== undefined) return { text: content, member: 'reasoning_content' }
  const text = nonEmptyString(message.reasoning)
  return text === undefined ? { text: '', member: 'reasoning_content' } : { text, member: 'reasoning' }
}

/** Returns the entry of `reasoning_details` for a thinking block. */
export function signedDetail(index: number, signature: string, length: number): ReasoningDetail {
  return { type: 'reasoning.text', format: DETAIL_FORMAT, index, length, signature }
}

/** Returns the entry of `reasoning_details` for a block of redacted thinking. */
export function encryptedDetail(index: number, data: string): ReasoningDetail {
  return { type: 'reasoning.encrypted', format: DETAIL_FORMAT, index, length: 0, data }
}

/** Whether this gateway made an entry of `reasoning_details`. Hosted routers make others of the same format. */
export function isOwnDetail(detail: JsonObject): boolean {
  return detail.format === DETAIL_FORMAT && tokenCount(detail.length) !== undefined
}

/**
 * Returns the thinking blocks of an assistant's chat message. Returns none if a detail is missing or the text has changed:
 * an Anthropic-style line would refuse the blocks.
 */
export function thinkingBlocks(message: JsonObject): JsonObject[] {
  const { reasoning_details: details, reasoning_content: content } = message
  if (!Array.isArray(details)) return []
  const reasoning = nonEmptyString(content) ?? nonEmptyString(message.reasoning) ?? ''
  const blocks: JsonObject[] = []
  let at = 0
  for (const [index, detail] of details.entries()) {
    if (!isJsonObject(detail) || detail.format !== DETAIL_FORMAT) return []
    if (isOwnDetail(detail) && detail.index !== index) return []
    // Hosted routers repeat the text in the detail.
    const length = tokenCount(detail.length ?? nonEmptyString(detail.text)?.length ?? 0)
    // A negative length would use a text again and again.
    if (length === undefined) return []
    const block = blockOf(detail, reasoning.slice(at, at + length))
    if (!block) return []
    blocks.push(block)
    at += length
  }
  return at === reasoning.length ? blocks : []
}

function blockOf({ type, signature, data }: JsonObject, thinking: string): JsonObject | undefined {
  if (type === 'reasoning.encrypted' && typeof data === 'string') return { type: 'redacted_thinking', data }
  if (type !== 'reasoning.text' || typeof signature !== 'string') return undefined
  return { type: 'thinking', thinking, signature }
}
