import { Buffer } from 'node:buffer'
import { scanTokens } from './token-scan.ts'

/** The tokens that a chat format adds to each message (role, separators). */
export const TOKENS_PER_MESSAGE = 4

/** The tokens of a request besides its messages (the start of the answer). */
export const TOKENS_PER_REQUEST = 3

/**
 * The tokens of one image of unknown size. OpenAI's tiles make 765 of 1024×1024 in high detail and 1,105 of 2048×1024;
 * Anthropic's width × height / 750 ends at about 1,600. The true size would require decoding or fetching the image. The
 * value is in the upper half of that range, so that an image is held at too high a cost rather than at too low a one.
 */
export const TOKENS_PER_IMAGE = 1200

/**
 * The tokens of one attached file of unknown length. Providers make 1,500 to 3,000 tokens of a PDF page, and the id of
 * a file does not tell its number of pages; this is a short document of two.
 */
export const TOKENS_PER_FILE = 4000

/**
 * Returns a JSON value as the text that a model reads. A value that is nested too deep for the stack counts like a
 * file.
 */
export function jsonText(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null) return ''
  try {
    return JSON.stringify(value)
  } catch {
    return 'x '.repeat(TOKENS_PER_FILE)
  }
}

// A text this short is mostly a delta of a stream, which ends at a token, so the fraction is not a further token.
// Rounded
// to the nearest integer, the fractions would add up over the deltas.
const SHORT = 16
const SHORT_ROUND_UP_FROM = 0.7

// The text is read in windows: typed-array reads are faster than charCodeAt, and the copy stays small and in cache.
const WINDOW = 32_768
const units = new Uint16Array(WINDOW)
const bytes = Buffer.from(units.buffer)

/**
 * Estimates the tokens of a text, on average within 15 % of o200k on English, code, Chinese and JSON, without a
 * vocabulary and in one pass over the string.
 *
 * Returns whole tokens, 0 for the empty string only. Accepts any string, also with lone surrogates; never throws.
 *
 * @example estimateTokens(' hello') // 1
 */
export function estimateTokens(text: string): number {
  if (text.length === 0) return 0
  let tokens = 0
  for (let start = 0; start < text.length; start += WINDOW) {
    const window = text.length > WINDOW ? text.slice(start, start + WINDOW) : text
    bytes.write(window, 'utf16le')
    tokens += scanTokens(units, window.length)
  }
  return Math.max(1, Math.floor(tokens + (text.length <= SHORT ? 1 - SHORT_ROUND_UP_FROM : 0.5)))
}
