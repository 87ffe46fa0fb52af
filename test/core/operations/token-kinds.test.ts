import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { costOf } from './cost-of.ts'

describe('each code unit counts as its script', () => {
  const SAMPLES = {
    space: ' ',
    newline: '\n',
    punctuation: '!',
    digit: '5',
    lower: 'c',
    upper: 'C',
    accented: 'é',
    cyrillic: 'я',
    hangul: '한',
    script: 'λ',
    han: '好',
    kana: 'の',
    wide: '。',
    symbol: '→',
    surrogate: '\ud83d',
    joiner: '\ude00',
    rare: '\u2e80',
    tab: '\t',
  } as const
  const RANGES: [first: number, kind: keyof typeof SAMPLES][] = [
    [0x0, 'symbol'],
    [0x9, 'tab'],
    [0xa, 'newline'],
    [0xb, 'space'],
    [0xd, 'newline'],
    [0xe, 'symbol'],
    [0x20, 'space'],
    [0x21, 'punctuation'],
    [0x30, 'digit'],
    [0x3a, 'punctuation'],
    [0x41, 'upper'],
    [0x5b, 'punctuation'],
    [0x61, 'lower'],
    [0x7b, 'punctuation'],
    [0x7f, 'symbol'],
    [0xa0, 'space'],
    [0xa1, 'symbol'],
    [0xc0, 'accented'],
    [0xd7, 'symbol'],
    [0xd8, 'accented'],
    [0xf7, 'symbol'],
    [0xf8, 'accented'],
    [0x250, 'symbol'],
    [0x370, 'script'],
    [0x400, 'cyrillic'],
    [0x530, 'script'],
    [0x1100, 'rare'],
    [0x1780, 'script'],
    [0x1800, 'rare'],
    [0x1e00, 'accented'],
    [0x1f00, 'script'],
    [0x2000, 'space'],
    [0x200b, 'symbol'],
    [0x2028, 'newline'],
    [0x202a, 'symbol'],
    [0x2e80, 'rare'],
    [0x3000, 'space'],
    [0x3001, 'wide'],
    [0x3005, 'han'],
    [0x3008, 'wide'],
    [0x3040, 'kana'],
    [0x3100, 'wide'],
    [0x3400, 'rare'],
    [0x4dc0, 'symbol'],
    [0x4e00, 'han'],
    [0xa000, 'rare'],
    [0xac00, 'hangul'],
    [0xd7a4, 'symbol'],
    [0xd800, 'surrogate'],
    [0xdc00, 'joiner'],
    [0xe000, 'rare'],
    [0xf900, 'han'],
    [0xfb00, 'symbol'],
    [0xfb50, 'script'],
    [0xfe00, 'joiner'],
    [0xfe10, 'wide'],
    [0xfe70, 'script'],
    [0xfeff, 'symbol'],
    [0xff00, 'wide'],
    [0xfff0, 'symbol'],
  ]

  /** Costs that tell the kinds apart. */
  const probed = (char: string) =>
    [char, char.repeat(4), `a${char}`, `(${char}`, `${char}b`, `${char}\ude00`].map(costOf).join()

  it('tells the kinds apart', () => {
    const kinds = Object.values(SAMPLES)
    assert.equal(new Set(kinds.map(probed)).size, kinds.length)
  })

  for (const [i, [first, kind]] of RANGES.entries()) {
    const last = (RANGES[i + 1]?.[0] ?? 0x10000) - 1
    it(`U+${first.toString(16)} to U+${last.toString(16)}: ${kind}`, () => {
      const expected = probed(SAMPLES[kind])
      for (let unit = first; unit <= last; unit++) {
        const char = String.fromCharCode(unit)
        assert.equal(probed(char), expected, unit.toString(16))
      }
    })
  }
})
