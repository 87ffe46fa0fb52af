import { Buffer } from 'node:buffer'
import type { ErrorReason } from '../../errors/index.ts'

// The average cost of a text in tokens, fitted to o200k over documentation, source code and JSON.

/** Longer words are read letter by letter. */
const MAX_WORD_LENGTH = 24
const ROW = MAX_WORD_LENGTH + 1

// A short word is one token. Longer ones cost a little more per letter, as they get rarer, and above the length that
// vocabularies contain, a token every few letters: [first knee, tokens per letter above it, second knee, more per
// letter above it].
// biome-ignore format: one row per kind of word
const WORD_ROWS = [
  [2, 0.045, 10, 0.22], [4, 0.035, 13, 0.24], [1, 0.09, 11, 0.2], // after nothing, a space, punctuation
  [2, 0.2, 14, 0.1], [3, 0.11, 14, 0.19], [1, 0.16, 14, 0.14], // the same in capitals
] as const

/** The cost of a word, at row (in the order above) × (maximum length + 1) + letters. */
const WORD_COST = new Float64Array(WORD_ROWS.length * ROW)
for (const [row, [knee, slope, secondKnee, secondSlope]] of WORD_ROWS.entries())
  for (let letters = 1; letters < ROW; letters++)
    WORD_COST[row * ROW + letters] =
      1 + Math.max(0, letters - knee) * slope + Math.max(0, letters - secondKnee) * secondSlope

/**
 * The additional cost per letter of a word with a letter beyond ASCII: vocabularies contain fewer words of those
 * languages.
 */
const ACCENTED_WORD_PER_LETTER = 0.09

/** Returns the cost of a Russian word; words in other languages with Cyrillic letters cost about a quarter more. */
function cyrillicWord(letters: number): number {
  return Math.max(1, 0.7 + 0.17 * letters)
}

/** Returns the cost of a Korean word, particles included. */
function hangulWord(letters: number): number {
  return Math.max(1, 0.3 + 0.59 * letters)
}

/** Returns the cost of a word in any other alphabet: Greek, Arabic, Hebrew, the Indic ones, Thai. */
function otherScriptWord(letters: number): number {
  return Math.max(1, 0.25 + 0.34 * letters)
}

/**
 * Returns the cost of Chinese or Japanese text. Vocabularies contain many Chinese words of two characters, few Japanese
 * ones.
 */
function eastAsianStretch(han: number, kana: number, wide: number): number {
  return han * (kana > 0 ? 0.97 : 0.73) + kana * 0.63 + wide * 0.75
}

/** Returns the cost of a word that is longer than any real one: a repeated letter, joined words, or random letters. */
function longWord(units: Uint16Array, start: number, end: number): number {
  let repeats = 0
  let vowels = 0
  for (let i = start; i < end; i++) {
    const unit = (units[i] ?? 0) | 0x20
    if (i > start && units[i] === units[i - 1]) repeats++
    else if (unit === 97 || unit === 101 || unit === 105 || unit === 111 || unit === 117) vowels++
  }
  const others = end - start - repeats
  const readable = vowels > others * 0.27 && vowels < others * 0.55
  return 1 + repeats / 8 + (others - 1) / (readable ? 3.3 : 2)
}

/** Returns the cost of four or more punctuation characters. A repeated character is cheap, a mixture is expensive. */
function punctuationRun(units: Uint16Array, start: number, end: number): number {
  let changes = 0
  for (let i = start + 1; i < end; i++) if (units[i] !== units[i - 1]) changes++
  return 1 + Math.max(0, changes - 3) * 0.68 + (end - start - changes - 1) / 50
}

/** Returns the cost of a repeated symbol, such as a line of box characters. */
function symbolRun(length: number): number {
  return 1 + (length - 1) / 16
}

/** Returns the cost of blanks. Tokens of tabs are shorter than those of spaces. */
function blanksRun(length: number, tabs: boolean): number {
  return 1 + (length - 1) / (tabs ? 16 : 110)
}

/** Returns the cost of white space up to and including its last line break. */
function lineBreaks(length: number): number {
  return length < 5 ? 1 : 1 + (length - 4) / 16
}

/**
 * Returns the cost of letters and digits that change kind every few characters. They are base64, hexadecimal or a key,
 * and vocabularies contain only pieces of one or two characters of them.
 */
function encodedRun(length: number, pieces: number, tokens: number): number {
  return length >= 16 && length < pieces * 3.8 ? Math.max(tokens, length * 0.66) : tokens
}

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
 * a file does not show its number of pages; this is a short document of two.
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

// A text this short is mostly a delta of a stream, which ends at a token, so the fraction is not a further token. Rounded
// to the nearest integer, the fractions would add up over the deltas.
const SHORT = 16
const SHORT_ROUND_UP_FROM = 0.7

// The text is read in windows: typed-array reads are faster than charCodeAt, and the copy stays small and in cache.
// Behind the text stands a zero, a symbol: runs of all other characters end there without a look at the length.
const WINDOW = 32_768
const units = new Uint16Array(WINDOW + 1)
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
  return Math.max(1, Math.floor(tokensIn(text) + (text.length <= SHORT ? 1 - SHORT_ROUND_UP_FROM : 0.5)))
}

/** Returns the same with its fraction. */
export function tokensIn(text: string): number {
  let tokens = 0
  for (let start = 0; start < text.length; start += WINDOW) {
    const window = text.length > WINDOW ? text.slice(start, start + WINDOW) : text
    bytes.write(window, 'utf16le')
    units[window.length] = 0
    tokens += scanTokens(window.length)
  }
  return tokens
}

/**
 * The share of an estimate that is certain: estimates err by about 15 %. The gateway refuses input that is certainly too
 * long; the upstream decides on the rest.
 */
const CERTAIN_SHARE = 0.85

/** Returns the context window that a request needs at least, in tokens. */
export function windowNeeded(estimatedInputTokens: number, maxOutputTokens: number | undefined): number {
  return Math.ceil(CERTAIN_SHARE * estimatedInputTokens) + (maxOutputTokens ?? 0)
}

/** Returns the reason for a request that does not fit, with the gateway's own estimate: upstreams count a little otherwise. */
export function contextReason(
  request: { readonly windowTokens: number; readonly maxOutputTokens: number | undefined },
  limit: number,
): ErrorReason {
  return { kind: 'context', numbers: { input: request.windowTokens, output: request.maxOutputTokens, limit } }
}

// The classes of UTF-16 code units. DIGIT to ACCENTED form unbroken runs, LOWER to KANA are letters, HAN to WIDE are
// written without blanks between words. They are declared here and not imported: V8 folds constants of the same
// module, which makes the scan a fifth faster.
const SPACE = 0
const NEWLINE = 1
const PUNCTUATION = 2
const DIGIT = 3
const LOWER = 4
const UPPER = 5
// Latin letters beyond ASCII, either case.
const ACCENTED = 6
const CYRILLIC = 7
const HANGUL = 8
// Any other alphabet that vocabularies contain well: Greek, Arabic, Hebrew, the Indic ones, Thai.
const SCRIPT = 9
const HAN = 10
const KANA = 11
// East Asian punctuation and full-width forms.
const WIDE = 12
// About one token each: arrows, box drawing, typographic quotes, control characters.
const SYMBOL = 13
// The first half of a surrogate pair, which is charged for both halves; almost always an emoji.
const SURROGATE = 14
// The second halves of pairs, and variation selectors: mostly part of the token before.
const JOINER = 15
// Most vocabularies encode these as bytes: two or three tokens.
const RARE = 16

// First and last code unit, and the class. A code unit without a row is a SYMBOL; a later row overrides earlier ones.
// biome-ignore format: rows grouped by script
const RANGES: readonly (readonly [first: number, last: number, kind: number])[] = [
  [0x09, 0x09, SPACE], [0x0b, 0x0c, SPACE], [0x20, 0x20, SPACE], [0xa0, 0xa0, SPACE], [0x2000, 0x200a, SPACE],
  [0x0a, 0x0a, NEWLINE], [0x0d, 0x0d, NEWLINE], [0x2028, 0x2029, NEWLINE], [0x3000, 0x3000, SPACE],
  [0x21, 0x2f, PUNCTUATION], [0x3a, 0x40, PUNCTUATION], [0x5b, 0x60, PUNCTUATION], [0x7b, 0x7e, PUNCTUATION],
  [0x30, 0x39, DIGIT], [0x41, 0x5a, UPPER], [0x61, 0x7a, LOWER],
  [0xc0, 0x24f, ACCENTED], [0xd7, 0xd7, SYMBOL], [0xf7, 0xf7, SYMBOL], [0x1e00, 0x1eff, ACCENTED],
  [0x400, 0x52f, CYRILLIC], [0x370, 0x3ff, SCRIPT], [0x1f00, 0x1fff, SCRIPT],
  [0x530, 0x10ff, SCRIPT], [0x1780, 0x17ff, SCRIPT], [0xfb50, 0xfdff, SCRIPT], [0xfe70, 0xfefe, SCRIPT],
  [0x1100, 0x177f, RARE], [0x1800, 0x1dff, RARE], [0x2e80, 0x2fff, RARE], [0xa000, 0xabff, RARE], [0xe000, 0xf8ff, RARE],
  [0x3400, 0x4dbf, RARE], [0x4e00, 0x9fff, HAN], [0xf900, 0xfaff, HAN], [0x3005, 0x3007, HAN],
  [0x3040, 0x30ff, KANA], [0xac00, 0xd7a3, HANGUL],
  [0x3001, 0x3004, WIDE], [0x3008, 0x303f, WIDE], [0x3100, 0x33ff, WIDE], [0xfe10, 0xfe6f, WIDE], [0xff00, 0xffef, WIDE],
  [0xd800, 0xdbff, SURROGATE], [0xdc00, 0xdfff, JOINER], [0xfe00, 0xfe0f, JOINER],
]

// The class of every UTF-16 code unit.
const CHAR_CLASS = new Uint8Array(0x10000).fill(SYMBOL)
for (const [first, last, kind] of RANGES) CHAR_CLASS.fill(kind, first, last + 1)

// The character directly before a word, which becomes part of its first token; the rows of the table of word costs.
const NO_LEAD = 0
const SPACE_LEAD = 1
const PUNCTUATION_LEAD = 2
// Added to the lead of a word that begins with two or more capitals.
const CAPITALS = 3

const APOSTROPHE = 39
const TAB = 9
// A run with more changes between letters and digits, or of case, may be encoded data.
const PIECES_OF_A_PLAIN_RUN = 5

/**
 * Returns the cost in tokens, with a fraction, of the first `length` code units of the window. It splits the text as
 * tokenizers do (a word with the one character before it, digits by three, punctuation with the line break behind it,
 * white space up to the blank before a word) and charges each piece its average cost.
 */
function scanTokens(length: number): number {
  let tokens = 0
  let lead = NO_LEAD
  // The unbroken run of letters and digits that the last piece belongs to.
  let runStart = 0
  let runEnd = -1
  let runPieces = 0
  let runTokens = 0
  let i = 0
  let kind = CHAR_CLASS[units[0] as number] as number

  while (i < length) {
    const start = i
    let next = kind
    if (kind >= DIGIT && kind <= ACCENTED) {
      let cost: number
      if (kind === DIGIT) {
        while (next === DIGIT) next = CHAR_CLASS[units[++i] as number] as number
        cost = Math.ceil((i - start) / 3)
      } else {
        while (next === UPPER) next = CHAR_CLASS[units[++i] as number] as number
        const row = i - start > 1 ? lead + CAPITALS : lead
        let accents = 0
        while (next === LOWER || next === ACCENTED) {
          if (next === ACCENTED) accents++
          next = CHAR_CLASS[units[++i] as number] as number
        }
        const letters = i - start
        cost = letters > MAX_WORD_LENGTH ? longWord(units, start, i) : (WORD_COST[row * ROW + letters] ?? 1)
        if (accents > 0) cost += ACCENTED_WORD_PER_LETTER * letters
      }
      if (runEnd !== start) {
        if (runPieces > PIECES_OF_A_PLAIN_RUN)
          tokens += encodedRun(runEnd - runStart, runPieces, runTokens) - runTokens
        runStart = start
        runPieces = 0
        runTokens = 0
      }
      tokens += cost
      runTokens += cost
      runEnd = i
      runPieces++
      lead = NO_LEAD
    } else if (kind <= NEWLINE) {
      let blanksFrom = start
      while (next <= NEWLINE) {
        i++
        if (next === NEWLINE) blanksFrom = i
        next = CHAR_CLASS[units[i] as number] as number
      }
      if (blanksFrom > start) tokens += lineBreaks(blanksFrom - start)
      const blanks = i - blanksFrom
      // The last blank belongs to the next word or punctuation; the blanks before it are a token of their own.
      if (blanks > 1) tokens += blanksRun(blanks - 1, units[blanksFrom] === TAB)
      if (blanks > 0 && next !== DIGIT && i < length) lead = SPACE_LEAD
      else {
        lead = NO_LEAD
        if (next === DIGIT ? blanks > 0 : blanks === 1) tokens += 1
      }
    } else if (kind === PUNCTUATION) {
      next = CHAR_CLASS[units[++i] as number] as number
      if (lead === NO_LEAD && next >= LOWER && next <= KANA) {
        lead = PUNCTUATION_LEAD
        // 's, 't, 're: half of them are part of the word before.
        if (runEnd === start && units[start] === APOSTROPHE) tokens -= 0.5
      } else {
        while (next === PUNCTUATION) next = CHAR_CLASS[units[++i] as number] as number
        tokens += i - start > 3 ? punctuationRun(units, start, i) : 1
        while (next === NEWLINE) next = CHAR_CLASS[units[++i] as number] as number
        lead = NO_LEAD
      }
    } else if (kind === CYRILLIC || kind === HANGUL || kind === SCRIPT) {
      while (next === kind) next = CHAR_CLASS[units[++i] as number] as number
      const letters = i - start
      if (kind === CYRILLIC) tokens += cyrillicWord(letters)
      else tokens += kind === HANGUL ? hangulWord(letters) : otherScriptWord(letters)
      if (lead === PUNCTUATION_LEAD) tokens += 0.7
      lead = NO_LEAD
    } else if (kind >= HAN && kind <= WIDE) {
      let kana = 0
      let wide = 0
      while (next >= HAN && next <= WIDE) {
        if (next === KANA) kana++
        else if (next === WIDE) wide++
        next = CHAR_CLASS[units[++i] as number] as number
      }
      tokens += eastAsianStretch(i - start - kana - wide, kana, wide) + (lead === PUNCTUATION_LEAD ? 0.8 : 0)
      lead = NO_LEAD
    } else {
      const unit = units[start]
      next = CHAR_CLASS[units[++i] as number] as number
      if (kind === SURROGATE || kind === RARE) {
        tokens += 2
        if (kind === SURROGATE && next === JOINER) next = CHAR_CLASS[units[++i] as number] as number
      } else if (kind === JOINER) tokens += 0.6
      else {
        while (i < length && units[i] === unit) next = CHAR_CLASS[units[++i] as number] as number
        tokens += symbolRun(i - start)
      }
      lead = NO_LEAD
    }
    kind = next
  }
  if (runPieces > PIECES_OF_A_PLAIN_RUN)
    tokens += encodedRun(runEnd - runStart, runPieces, runTokens) - runTokens
  return tokens
}
