import { isJsonObject, type JsonObject } from '../../json/index.ts'
import { estimateTokens } from './token-estimate.ts'

/** Providers split streams at the ends of tokens: a plain delta of at most this length is almost always one token. */
const ONE_TOKEN_CHARS = 8

/** Counts the tokens of a text delta. */
export function countText(text: string): number {
  if (text === '') return 0
  return text.length <= ONE_TOKEN_CHARS && isAscii(text) ? 1 : estimateTokens(text)
}

/**
 * Counts the tokens of a text delta as it is escaped in the JSON of an event.
 *
 * @param delta UTF-8 read as latin1, with its escapes.
 */
export function countRawText(delta: string): number {
  if (isAscii(delta)) return countText(delta.includes('\\') ? unescaped(delta) : delta)
  return countText(unescaped(Buffer.from(delta, 'latin1').toString()))
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false
  return true
}

function unescaped(text: string): string {
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    return text
  }
}

/**
 * Returns the only member of a delta that has text; undefined if the delta has anything else of interest.
 *
 * @param known members that contain text in this protocol.
 */
export function soleTextMember(delta: object, known: ReadonlySet<string>): string | undefined {
  let sole: string | undefined
  for (const [member, value] of Object.entries(delta)) {
    if (value === null || value === '' || member === 'role' || member === 'type') continue
    if (sole !== undefined || typeof value !== 'string' || !known.has(member)) return undefined
    sole = member
  }
  return sole
}

/** Spoken answers come to twenty tokens a second. Streams of them have 24,000 samples of two bytes. */
const BYTES_PER_TOKEN = (24_000 * 2) / 20

/** Four characters of base64 stand for three bytes. */
const BYTES_PER_CHARACTER = 3 / 4

/** The tokens of an image that a chat model makes, of unknown size. */
export const TOKENS_PER_MADE_IMAGE = 1290

/** Characters of sealed reasoning per token: four of base64 are three bytes, and a token is about four bytes. */
const SEALED_CHARS_PER_TOKEN = 5

/** Returns the estimated tokens of reasoning that only its upstream can read. */
export function sealedTokens(sealed: unknown): number {
  return typeof sealed === 'string' ? Math.ceil(sealed.length / SEALED_CHARS_PER_TOKEN) : 0
}

/** Counts speech: the tokens of its transcript or of its sound, whichever are more. */
export class SpeechCount {
  readonly #estimate: (text: string) => number
  #transcript = 0
  #bytes = 0

  /** @param estimate returns the tokens of a text. */
  constructor(estimate: (text: string) => number) {
    this.#estimate = estimate
  }

  get tokens(): number {
    return Math.max(this.#transcript, Math.ceil(this.#bytes / BYTES_PER_TOKEN))
  }

  /**
   * Adds a piece.
   *
   * @param audio an object with base64 in `data`, or text in `transcript`.
   * @returns by how many tokens there are more.
   */
  add(audio: unknown): number {
    const before = this.tokens
    const { data, transcript }: JsonObject = isJsonObject(audio) ? audio : {}
    if (typeof transcript === 'string') this.#transcript += this.#estimate(transcript)
    if (typeof data === 'string') this.#bytes += data.length * BYTES_PER_CHARACTER
    return this.tokens - before
  }
}
