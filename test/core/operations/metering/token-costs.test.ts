import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { estimateTokens, tokensIn } from '../../../../lib/core/operations/metering/token-estimate.ts'
import { assertCosts } from './cost-of.ts'

describe('a word costs one token while it is short, and more per letter from where words get rare', () => {
  const small = 'abcdefghijklmnopqrstuvwx'
  const capital = small.toUpperCase()
  // Letters and cost: up to the first knee, past it, up to the second, past it, and the longest.
  const rows: [kind: string, lead: string, letters: string, costs: [number, number][]][] = [
    [
      'at the start',
      '',
      small,
      [
        [1, 1],
        [2, 1],
        [3, 1.045],
        [10, 1.36],
        [11, 1.625],
        [24, 5.07],
      ],
    ],
    [
      'behind a blank',
      ' ',
      small,
      [
        [1, 1],
        [4, 1],
        [5, 1.035],
        [13, 1.315],
        [14, 1.59],
        [24, 4.34],
      ],
    ],
    [
      'behind a bracket',
      '(',
      small,
      [
        [1, 1],
        [2, 1.09],
        [11, 1.9],
        [12, 2.19],
        [24, 5.67],
      ],
    ],
    [
      'of capitals',
      '',
      capital,
      [
        [1, 1],
        [2, 1],
        [3, 1.2],
        [14, 3.4],
        [15, 3.7],
        [24, 6.4],
      ],
    ],
    [
      'of capitals behind a blank',
      ' ',
      capital,
      [
        [1, 1],
        [3, 1],
        [4, 1.11],
        [14, 2.21],
        [15, 2.51],
        [24, 5.21],
      ],
    ],
    [
      'of capitals behind a bracket',
      '(',
      capital,
      [
        [2, 1.16],
        [14, 3.08],
        [15, 3.38],
        [24, 6.08],
      ],
    ],
  ]
  for (const [kind, lead, letters, costs] of rows) {
    it(`one ${kind}`, () =>
      assertCosts(costs.map(([length, cost]) => [lead + letters.slice(0, length), cost] as const)))
  }

  it('with one capital at its start costs the same, with two it costs as one in capitals', () => {
    assertCosts([
      ['Abcdefgh', 1.27],
      ['ABcdefgh', 2.2],
      ['abCD', 2],
      ['abCDe', 2.2],
      ['abCdef', 2.09],
    ])
  })

  it('with letters beyond ASCII costs more for each of its letters', () => {
    assertCosts([
      ['é', 1.09],
      ['né', 1.18],
      [' née', 1.27],
      ['éé', 1.18],
    ])
  })

  it('longer than any real word costs by its apparent kind', () => {
    assertCosts([
      // One letter, 24 times repeated.
      ['b'.repeat(25), 1 + 24 / 8],
      ['a'.repeat(25), 1 + 24 / 8],
      // No repeats, and vowels as in a text: 7 of 25 letters.
      ['bacedifoguhabcdefghijklmn', 1 + 24 / 3.3],
      // Too few vowels, and too many.
      ['bcdfghjklmnpqrstvwxzbcdfg', 1 + 24 / 2],
      ['aeiouaeiouaeiouaeioubcdfg', 1 + 24 / 2],
      ['AEIOUBCDFGAEIOUBCDFGBCDFG', 1 + 24 / 3.3],
    ])
  })

  it('of 100 letters counts as readable from 28 to 55 vowels', () => {
    const word = (vowels: number) =>
      Array.from({ length: 100 }, (_, i) =>
        i < 2 * vowels && i % 2 === 0 ? 'aeiou'[(i / 2) % 5] : 'bcdfg'[i % 5],
      ).join('')
    const mixed = (vowels: number) =>
      'aeiou'.repeat(20).slice(0, vowels) + 'bcdfg'.repeat(20).slice(0, 100 - vowels)
    assertCosts([
      [word(27), 1 + 99 / 2],
      [word(28), 1 + 99 / 3.3],
      [mixed(55), 1 + 99 / 3.3],
      [mixed(56), 1 + 99 / 2],
    ])
  })
})

describe('the cost of text that is not a word of Latin letters', () => {
  it('digits: a token for each three, and one for a blank in front', () => {
    assertCosts([
      ['1', 1],
      ['123', 1],
      ['1234', 2],
      ['1234567', 3],
      [' 1', 2],
      ['  1', 3],
      ['a 1', 3],
      ['\n1', 2],
    ])
  })

  it('blanks: the last one belongs to what follows', () => {
    assertCosts([
      [' ', 1],
      ['  ', 1],
      ['   ', 1 + 1 / 110],
      ['\t\t\t', 1 + 1 / 16],
      [' a', 1],
      ['  a', 2],
      ['   a', 2 + 1 / 110],
      ['\t\t\ta', 2 + 1 / 16],
      [' (', 1],
      [' я', 1],
      ['a ', 2],
      ['a  ', 2],
    ])
  })

  it('line breaks: one token with the blanks before the last', () => {
    assertCosts([
      ['\n', 1],
      ['\n\n\n\n', 1],
      ['\n\n\n\n\n', 1 + 1 / 16],
      [' \n', 1],
      ['\n ', 2],
      ['\n  ', 2],
      ['\n \n ', 2],
      ['\n a', 2],
      ['\n\t\t\t', 2 + 1 / 16],
      ['a\nb', 3],
    ])
  })

  it('punctuation: one token up to three, with the line breaks behind it', () => {
    assertCosts([
      ['(', 1],
      ['...', 1],
      ['....', 1 + 3 / 50],
      ['(-)!', 1 + 0 / 50],
      ['(-)!?', 1 + 0.68],
      ['(-)!?', 1.68],
      [');\n', 1],
      [');\n\n', 1],
      [');\n ', 2],
      ['(1', 2],
      ['(a', 1],
      ['((a', 2],
      [' (a', 2],
      ['----------', 1 + 9 / 50],
      ['-----=====', 1 + 8 / 50],
    ])
  })

  it('an apostrophe: half of a token less behind a word', () => {
    assertCosts([
      ["don't", 1.045 + 0.5],
      ["'t", 1],
      [" 't", 2],
      ['don"t', 2.045],
    ])
  })

  it('words of other alphabets', () => {
    assertCosts([
      ['я', 1],
      ['при', 0.7 + 0.17 * 3],
      [' привет', 0.7 + 0.17 * 6],
      ['(привет', 0.7 + 0.17 * 6 + 0.7],
      ['한', 1],
      ['한국', 0.3 + 0.59 * 2],
      ['(한국', 0.3 + 0.59 * 2 + 0.7],
      ['λ', 1],
      ['λόγος', 0.25 + 0.34 * 5],
      ['(λόγος', 0.25 + 0.34 * 5 + 0.7],
      ['λя', 2],
      ['привет (a', 0.7 + 0.17 * 6 + 2],
    ])
  })

  it('Chinese and Japanese, which are written without blanks', () => {
    assertCosts([
      ['好', 0.73],
      ['你好', 1.46],
      ['。', 0.75],
      ['好。', 0.73 + 0.75],
      ['の', 0.63],
      ['私の', 0.97 + 0.63],
      ['私の。', 0.97 + 0.63 + 0.75],
      ['(好', 0.73 + 0.8],
      [' 好', 0.73],
      ['(の', 0.63 + 0.8],
      ['(。', 1 + 0.75],
      ['好a', 1.73],
    ])
  })

  it('symbols, emoji and halves of pairs', () => {
    assertCosts([
      ['→', 1],
      ['→→', 1 + 1 / 16],
      ['→←', 2],
      ['─'.repeat(17), 2],
      ['😀', 2],
      ['😀😀', 4],
      ['\ud83d', 2],
      ['\ude00', 0.6],
      ['\ude00\ude00', 1.2],
      ['❤\ufe0f', 1.6],
      ['\u2e80', 2],
      ['\u2e80\u2e80', 4],
      ['\u2e80\ude00', 2.6],
      [' →a', 2],
      ['→a', 2],
    ])
  })

  it('letters and digits without a break that change kind every few characters: two thirds of a token each', () => {
    // Six pieces of sixteen characters; five pieces are a plain run, and so is a shorter one.
    assertCosts([
      ['ab12cd34ef56gh78', 16 * 0.66],
      ['abc123abc123abc1', 16 * 0.66],
      ['abc123abc123abcd', 1.045 + 1 + 1.045 + 1 + 1.09],
      ['ab1ab1ab1ab1ab1', 10],
      ['ab12cd34ef56gh78 is', 16 * 0.66 + 1],
      ['is ab12cd34ef56gh78', 1 + 16 * 0.66],
      ['ab12cd34ef56gh78 ab12cd34ef56gh78', 2 * 16 * 0.66],
      ['ab12cd34ef56gh78-ab12cd34', 16 * 0.66 + 1.09 + 1 + 1 + 1],
      // Each character a piece: more than two thirds already.
      ['a1b2c3d4e5f6g7h8', 16],
      // Six pieces of 22 and of 23 characters.
      ['abcd123abcd123abcd1234', 22 * 0.66],
      ['abcd123abcd123abcde1234', 1.09 + 1 + 1.09 + 1 + 1.135 + 2],
    ])
  })
})

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

/** The costs of texts that hold the character many times in a row, inside of words, and between dots. */
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

  /** Costs that distinguish the kinds. */
  const probed = (char: string) =>
    [char, char.repeat(4), `a${char}`, `(${char}`, `${char}b`, `${char}\ude00`].map(tokensIn).join()

  it('distinguishes the kinds', () => {
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
