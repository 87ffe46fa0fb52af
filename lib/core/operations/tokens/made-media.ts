import { isJsonObject, type JsonObject } from '../../json/index.ts'

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
