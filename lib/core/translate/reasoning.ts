import { isJsonObject, type JsonObject, nonEmptyString, objectsIn, tokenCount } from '../json/index.ts'
import { askedReasoning } from '../operations/chat/asked-reasoning.ts'
import type { AskedEffort } from './openai-models.ts'

/** The share of the output limit that a model may spend on reasoning, by OpenAI's names of efforts. */
const SHARE_BY_EFFORT: Readonly<Record<string, number>> = {
  minimal: 0.1,
  low: 0.2,
  medium: 0.5,
  high: 0.8,
  xhigh: 0.95,
  max: 0.95,
}

/** Anthropic's smallest budget, in tokens. */
const MIN_BUDGET = 1024

/** Returns the thinking budget for an effort, in tokens; undefined if the output limit is too small for any. */
export function budgetOf(effort: string, maxTokens: number): number | undefined {
  const share = SHARE_BY_EFFORT[effort]
  // The budget is a part of the output limit and must leave some of it.
  if (share === undefined || maxTokens <= MIN_BUDGET) return undefined
  return Math.max(MIN_BUDGET, Math.floor(maxTokens * share))
}

/** Returns the effort that matches a thinking budget, by the names that all reasoning models know. */
export function effortOf(budget: number, maxTokens: number): string {
  const share = budget / maxTokens
  if (share < 0.35) return 'low'
  return share < 0.65 ? 'medium' : 'high'
}

/** Returns the output limit that a chat asks for, in tokens. */
export function maxTokensOf({
  max_completion_tokens: completion,
  max_tokens: old,
}: JsonObject): number | undefined {
  if (typeof completion === 'number') return completion
  return typeof old === 'number' ? old : undefined
}

/**
 * Returns the effort that a chat asks for. A budget counts as the effort that matches it.
 *
 * @param defaultMaxTokens the output limit of a chat without one.
 */
export function askedEffort(json: JsonObject, defaultMaxTokens: number): AskedEffort | undefined {
  const { param, effort, budget } = askedReasoning(json) ?? {}
  if (param === undefined) return undefined
  if (effort !== undefined) return { param, effort: String(effort) }
  const limit = maxTokensOf(json) ?? defaultMaxTokens
  return { param, effort: typeof budget === 'number' ? effortOf(budget, limit) : 'medium' }
}

/** Whether a text is one of OpenAI's or Anthropic's efforts that ask for reasoning. */
export function isEffort(effort: unknown): effort is string {
  return typeof effort === 'string' && Object.hasOwn(SHARE_BY_EFFORT, effort)
}

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
  /** The text of a block, for callers who read it here. */
  readonly text?: string
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

interface ReasoningText {
  readonly text: string
  readonly member: ReasoningMember
}

/** Returns the reasoning of a chat message or delta, and the member that holds it. */
export function reasoningIn(message: JsonObject): ReasoningText {
  const content = nonEmptyString(message.reasoning_content)
  if (content !== undefined) return { text: content, member: 'reasoning_content' }
  const text = nonEmptyString(message.reasoning)
  return text === undefined ? { text: '', member: 'reasoning_content' } : { text, member: 'reasoning' }
}

/** Returns the reasoning of a message or delta that may have it in `reasoning_details` only. Most routers repeat it there. */
export function reasoningOrDetails(message: JsonObject): ReasoningText {
  const given = reasoningIn(message)
  if (given.text !== '') return given
  const texts = objectsIn(message.reasoning_details).map((detail) => textOfDetail(detail) ?? '')
  const text = texts.join('')
  return text === '' ? given : { text, member: 'reasoning' }
}

/** Returns the text in an entry of `reasoning_details`; undefined if it has none. */
export function textOfDetail({ type, text, summary }: JsonObject): string | undefined {
  return nonEmptyString(type === 'reasoning.summary' ? summary : text)
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
  if (!Array.isArray(message.reasoning_details)) return []
  const details = joinedDetails(message.reasoning_details)
  const { text: reasoning } = reasoningOrDetails(message)
  const lengths = lengthsOf(details, reasoning)
  if (!lengths) return []
  const blocks: JsonObject[] = []
  let at = 0
  for (const [index, detail] of details.entries()) {
    if (!isJsonObject(detail) || detail.format !== DETAIL_FORMAT) return []
    if (isOwnDetail(detail) && detail.index !== index) return []
    const length = lengths[index] ?? 0
    const block = blockOf(detail, reasoning.slice(at, at + length))
    if (!block) return []
    blocks.push(block)
    at += length
  }
  return at === reasoning.length ? blocks : []
}

/** Joins the pieces of one text, which some clients send back as they came in a stream. The last has the signature. */
function joinedDetails(details: readonly unknown[]): readonly unknown[] {
  const joined: unknown[] = []
  for (const detail of details) {
    const last = joined.at(-1)
    if (isJsonObject(last) && isJsonObject(detail) && isPieceBefore(last, detail)) {
      const text = `${nonEmptyString(last.text) ?? ''}${nonEmptyString(detail.text) ?? ''}`
      joined[joined.length - 1] = { ...detail, text }
    } else joined.push(detail)
  }
  return joined
}

function isPieceBefore(last: JsonObject, { type, index }: JsonObject): boolean {
  const isText = type === 'reasoning.text' && last.type === type
  return isText && typeof index === 'number' && last.index === index && (last.signature ?? null) === null
}

/**
 * Returns the length of each block's text; undefined if they are not known. Some clients leave `length` out: then the text
 * of one block can be what is left of the reasoning, if anything is.
 */
function lengthsOf(details: readonly unknown[], reasoning: string): readonly number[] | undefined {
  const unknown: number[] = []
  const lengths: number[] = []
  let left = reasoning.length
  for (const [index, detail] of details.entries()) {
    const { type, length, text } = isJsonObject(detail) ? detail : {}
    const isGiven = (length ?? undefined) !== undefined
    // Hosted routers repeat the text in the detail.
    const ofText = typeof text === 'string' ? text.length : undefined
    const known = isGiven ? tokenCount(length) : type === 'reasoning.encrypted' ? 0 : ofText
    // A negative length would use a text again and again.
    if (known === undefined && isGiven) return undefined
    if (known === undefined) unknown.push(index)
    lengths.push(known ?? 0)
    left -= known ?? 0
  }
  const [only, ...others] = unknown
  if (only === undefined) return lengths
  if (others.length > 0 || left <= 0) return undefined
  lengths[only] = left
  return lengths
}

function blockOf({ type, signature, data }: JsonObject, thinking: string): JsonObject | undefined {
  if (type === 'reasoning.encrypted' && typeof data === 'string') return { type: 'redacted_thinking', data }
  if (type !== 'reasoning.text' || typeof signature !== 'string') return undefined
  return { type: 'thinking', thinking, signature }
}
