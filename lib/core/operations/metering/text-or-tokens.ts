import { z } from 'zod'
import { PREFIX_CHARS, type TokenEstimator } from '../operation.ts'

/** The input of the older OpenAI-style endpoints: a text or its tokens, or a list of either. */
type TextOrTokens = string | readonly string[] | readonly number[] | readonly (readonly number[])[]

/** Tokens are checked in a loop: a schema for each of a million tokens would block other requests. */
export const textOrTokens = z
  .custom<TextOrTokens>()
  .superRefine((given, context) => {
    const fault = faultIn(given)
    if (fault) context.addIssue({ code: 'custom', ...fault })
  })
  .meta({
    anyOf: [
      { type: 'string' },
      { type: 'array', items: { type: 'string' } },
      { type: 'array', items: { type: 'integer', minimum: 0 } },
      { type: 'array', items: { type: 'array', items: { type: 'integer', minimum: 0 } } },
    ],
  })

interface Fault {
  readonly message: string
  readonly path: number[]
}

const ONE_OF_FOUR = 'must be a string, a list of strings, a list of tokens, or a list of such lists'

function faultIn(given: unknown): Fault | undefined {
  if (typeof given === 'string') return undefined
  if (!Array.isArray(given)) return { message: ONE_OF_FOUR, path: [] }
  const list: readonly unknown[] = given
  if (list.length === 0) return { message: 'must not be empty', path: [] }
  const [first] = list
  if (typeof first === 'string')
    return faultyItem(list, (item) => typeof item === 'string', 'must be a string')
  if (typeof first === 'number') return faultyItem(list, isToken, 'must be a token: a whole number from 0 up')
  for (const [i, item] of list.entries()) {
    if (!Array.isArray(item) || item.length === 0) return { message: 'must be a list of tokens', path: [i] }
    const fault = faultyItem(item, isToken, 'must be a token: a whole number from 0 up')
    if (fault) return { ...fault, path: [i, ...fault.path] }
  }
  return undefined
}

function faultyItem(
  list: readonly unknown[],
  fits: (item: unknown) => boolean,
  message: string,
): Fault | undefined {
  const at = list.findIndex((item) => !fits(item))
  return at < 0 ? undefined : { message, path: [at] }
}

function isToken(item: unknown): boolean {
  return Number.isSafeInteger(item) && (item as number) >= 0
}

interface InputSize {
  /** The number of texts. Each is read separately. */
  readonly texts: number
  readonly tokens: number
  /** The tokens of the longest text. */
  readonly longest: number
}

/** Measures an input: texts are estimated, tokens are counted. */
export function sizeOf(input: TextOrTokens, estimate: TokenEstimator): InputSize {
  if (typeof input === 'string') return sizeOfAll([estimate(input)])
  if (typeof input[0] === 'number') return sizeOfAll([input.length])
  const texts = input as readonly (string | readonly number[])[]
  return sizeOfAll(texts.map((text) => (typeof text === 'string' ? estimate(text) : text.length)))
}

function sizeOfAll(counts: readonly number[]): InputSize {
  let tokens = 0
  let longest = 0
  for (const count of counts) {
    tokens += count
    longest = Math.max(longest, count)
  }
  return { texts: counts.length, tokens, longest }
}

/** Returns the first characters of an input, or the first of its tokens. */
export function prefixOf(input: TextOrTokens): string {
  const [first] = typeof input === 'string' ? [input] : input
  if (typeof first === 'string') return first.slice(0, PREFIX_CHARS)
  const tokens = typeof first === 'number' ? (input as readonly number[]) : (first ?? [])
  return tokens.slice(0, PREFIX_CHARS / 4).join(' ')
}
