import { describe, it } from 'node:test'
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

  it('one with a capital at its start is a word like others, with two it is one in capitals', () => {
    assertCosts([
      ['Abcdefgh', 1.27],
      ['ABcdefgh', 2.2],
      ['abCD', 2],
      ['abCDe', 2.2],
      ['abCdef', 2.09],
    ])
  })

  it('one with letters beyond ASCII costs more for each of its letters', () => {
    assertCosts([
      ['é', 1.09],
      ['né', 1.18],
      [' née', 1.27],
      ['éé', 1.18],
    ])
  })

  it('one longer than any real one costs by what it seems to be', () => {
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

  it('one of 100 letters counts as readable from 28 to 55 vowels', () => {
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
