import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { estimateTokens } from '../../../lib/core/operations/tokens/token-estimate.ts'

/** Code units whose texts cost the same, each from the first to the last. */
const ALIKE: Readonly<Record<string, readonly (readonly [first: number, last: number])[]>> = {
  blanks: [
    [0x20, 0x20],
    [0x0b, 0x0c],
    [0xa0, 0xa0],
    [0x2000, 0x200a],
    [0x3000, 0x3000],
  ],
  'line breaks': [
    [0x0a, 0x0a],
    [0x0d, 0x0d],
    [0x2028, 0x2029],
  ],
  'punctuation of ASCII': [
    [0x21, 0x2f],
    [0x3a, 0x40],
    [0x5b, 0x60],
    [0x7b, 0x7e],
  ],
  digits: [[0x30, 0x39]],
  capitals: [[0x41, 0x5a]],
  'small letters': [[0x61, 0x7a]],
  'letters with accents': [
    [0xc0, 0xd6],
    [0xd8, 0xf6],
    [0xf8, 0x24f],
    [0x1e00, 0x1eff],
  ],
  Cyrillic: [[0x400, 0x52f]],
  'other alphabets': [
    [0x370, 0x3ff],
    [0x1f00, 0x1fff],
    [0x530, 0x10ff],
    [0x1780, 0x17ff],
    [0xfb50, 0xfdff],
    [0xfe70, 0xfefe],
  ],
  'rare scripts': [
    [0x1100, 0x177f],
    [0x1800, 0x1dff],
    [0x2e80, 0x2fff],
    [0xa000, 0xabff],
    [0xe000, 0xf8ff],
    [0x3400, 0x4dbf],
  ],
  'Chinese characters': [
    [0x4e00, 0x9fff],
    [0xf900, 0xfaff],
    [0x3005, 0x3007],
  ],
  kana: [[0x3040, 0x30ff]],
  Hangul: [[0xac00, 0xd7a3]],
  'wide punctuation': [
    [0x3001, 0x3004],
    [0x3008, 0x303f],
    [0x3100, 0x33ff],
    [0xfe10, 0xfe6f],
    [0xff00, 0xffef],
  ],
  symbols: [
    [0x00, 0x08],
    [0x7f, 0x9f],
    [0xa1, 0xbf],
    [0xd7, 0xd7],
    [0xf7, 0xf7],
    [0x250, 0x36f],
    [0x200b, 0x2027],
    [0x202a, 0x2e7f],
    [0x4dc0, 0x4dff],
    [0xd7a4, 0xd7ff],
    [0xfb00, 0xfb4f],
    [0xfff0, 0xffff],
  ],
}

/** What a word is that has the character at its beginning, in its middle and many times. */
function costsOf(unit: number): number[] {
  const text = String.fromCharCode(unit)
  return [text.repeat(60), `a${text}a `.repeat(30), `. ${text}. `.repeat(30)].map((each) =>
    estimateTokens(each),
  )
}

describe('the token estimate of a character', () => {
  for (const [script, ranges] of Object.entries(ALIKE))
    it(`is the same from the first to the last: ${script}`, () => {
      const units = ranges.flatMap(([first, last]) => [
        first,
        Math.min(first + 1, last),
        Math.max(last - 1, first),
        last,
      ])
      const expected = costsOf(units[0] as number)
      for (const unit of units) assert.deepEqual(costsOf(unit), expected, unit.toString(16))
    })

  it('is that of a blank for a tab between words', () => {
    assert.deepEqual(costsOf(0x09).slice(1), costsOf(0x20).slice(1))
  })
})
