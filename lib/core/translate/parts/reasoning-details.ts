import type { JsonObject } from '../translation.ts'
import { isObject, textIn } from './json-object.ts'

/** Tells the details of an Anthropic-style line from those that other upstreams send. */
export const DETAIL_FORMAT = 'anthropic-claude-v1'

/**
 * How a chat message carries the thinking blocks of an Anthropic-style line: the text in `reasoning_content`, and in
 * `reasoning_details` what that line wants to see again unchanged, one entry for each block in order.
 */
export interface ReasoningDetail {
  readonly type: 'reasoning.text' | 'reasoning.encrypted'
  readonly format: typeof DETAIL_FORMAT
  readonly index: number
  /**
   * How many UTF-16 units of `reasoning_content` are this block's. A stream tells the text before the signature, and
   * nothing keeps it until then; so whoever puts the block together again takes the text from there.
   */
  readonly length: number
  /** Of a text. */
  readonly signature?: string
  /** What is encrypted. */
  readonly data?: string
}

/**
 * Stands where Anthropic has a signature, in what was made of an OpenAI-style line's answer. No Anthropic-style line takes
 * it; it tells that the text may go back to the kind of line it came from.
 */
export const UNSIGNED = 'unsigned:openai-style-line'

/** The members that OpenAI-style lines tell their reasoning in. A line takes it back in its own only. */
export type ReasoningMember = 'reasoning_content' | 'reasoning'

/** What stands for the signature of reasoning that was told in a member. */
export function unsignedOf(member: ReasoningMember): string {
  return member === 'reasoning' ? `${UNSIGNED}:${member}` : UNSIGNED
}

/** The member that a text goes back in, by what stands for its signature; undefined where an Anthropic-style line signed. */
export function memberOf(signature: unknown): ReasoningMember | undefined {
  if (signature === UNSIGNED) return 'reasoning_content'
  return signature === unsignedOf('reasoning') ? 'reasoning' : undefined
}

/** The reasoning of a chat message or delta, and the member that it is in. */
export function reasoningIn(message: JsonObject): { text: string; member: ReasoningMember } {
  const content = textIn(message.reasoning_content)
  if (content !== undefined) return { text: content, member: 'reasoning_content' }
  const text = textIn(message.reasoning)
  return text === undefined ? { text: '', member: 'reasoning_content' } : { text, member: 'reasoning' }
}

/** A thinking block whose text ended, as an entry of `reasoning_details`. */
export function signedDetail(index: number, signature: string, length: number): ReasoningDetail {
  return { type: 'reasoning.text', format: DETAIL_FORMAT, index, length, signature }
}

/** A block of redacted thinking, as an entry of `reasoning_details`. */
export function encryptedDetail(index: number, data: string): ReasoningDetail {
  return { type: 'reasoning.encrypted', format: DETAIL_FORMAT, index, length: 0, data }
}

/** Whether an entry of `reasoning_details` was made here. Hosted routers make others of the same format. */
export function isOwnDetail(detail: JsonObject): boolean {
  return detail.format === DETAIL_FORMAT && typeof detail.length === 'number'
}

/**
 * The thinking blocks of an assistant's chat message, or none: where the details are not all there, or the text is no
 * longer what they were made of, an Anthropic-style line would refuse them.
 */
export function thinkingBlocks(message: JsonObject): JsonObject[] {
  const { reasoning_details: details, reasoning_content: content } = message
  if (!Array.isArray(details)) return []
  const reasoning = textIn(content) ?? textIn(message.reasoning) ?? ''
  const blocks: JsonObject[] = []
  let at = 0
  for (const [index, detail] of details.entries()) {
    if (!isObject(detail) || detail.format !== DETAIL_FORMAT) return []
    if (isOwnDetail(detail) && detail.index !== index) return []
    // Hosted routers tell the text once more.
    const length = typeof detail.length === 'number' ? detail.length : (textIn(detail.text)?.length ?? 0)
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
