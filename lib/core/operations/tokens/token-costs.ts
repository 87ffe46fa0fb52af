// The average cost of a text in tokens, fitted to o200k over documentation, source code and JSON.

/** Longer words are read letter by letter. */
export const MAX_WORD_LENGTH = 24
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
export const WORD_COST = new Float64Array(WORD_ROWS.length * ROW)
for (const [row, [knee, slope, secondKnee, secondSlope]] of WORD_ROWS.entries())
  for (let letters = 1; letters < ROW; letters++)
    WORD_COST[row * ROW + letters] =
      1 + Math.max(0, letters - knee) * slope + Math.max(0, letters - secondKnee) * secondSlope

/**
 * The additional cost per letter of a word with a letter beyond ASCII: vocabularies contain fewer words of those
 * languages.
 */
export const ACCENTED_WORD_PER_LETTER = 0.09

/** Returns the cost of a Russian word; words in other languages with Cyrillic letters cost about a quarter more. */
export function cyrillicWord(letters: number): number {
  return Math.max(1, 0.7 + 0.17 * letters)
}

/** Returns the cost of a Korean word, particles included. */
export function hangulWord(letters: number): number {
  return Math.max(1, 0.3 + 0.59 * letters)
}

/** Returns the cost of a word in any other alphabet: Greek, Arabic, Hebrew, the Indic ones, Thai. */
export function otherScriptWord(letters: number): number {
  return Math.max(1, 0.25 + 0.34 * letters)
}

/**
 * Returns the cost of Chinese or Japanese text. Vocabularies contain many Chinese words of two characters, few Japanese
 * ones.
 */
export function eastAsianStretch(han: number, kana: number, wide: number): number {
  return han * (kana > 0 ? 0.97 : 0.73) + kana * 0.63 + wide * 0.75
}

/** Returns the cost of a word that is longer than any real one: a repeated letter, joined words, or random letters. */
export function longWord(units: Uint16Array, start: number, end: number): number {
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
export function punctuationRun(units: Uint16Array, start: number, end: number): number {
  let changes = 0
  for (let i = start + 1; i < end; i++) if (units[i] !== units[i - 1]) changes++
  return 1 + Math.max(0, changes - 3) * 0.68 + (end - start - changes - 1) / 50
}

/** Returns the cost of a repeated symbol, such as a line of box characters. */
export function symbolRun(length: number): number {
  return 1 + (length - 1) / 16
}

/** Returns the cost of blanks. Tokens of tabs are shorter than those of spaces. */
export function blanksRun(length: number, tabs: boolean): number {
  return 1 + (length - 1) / (tabs ? 16 : 110)
}

/** Returns the cost of white space up to and including its last line break. */
export function lineBreaks(length: number): number {
  return length < 5 ? 1 : 1 + (length - 4) / 16
}

/**
 * Returns the cost of letters and digits that change kind every few characters. They are base64, hexadecimal or a key,
 * and vocabularies contain only pieces of one or two characters of them.
 */
export function encodedRun(length: number, pieces: number, tokens: number): number {
  return length >= 16 && length < pieces * 3.8 ? Math.max(tokens, length * 0.66) : tokens
}
