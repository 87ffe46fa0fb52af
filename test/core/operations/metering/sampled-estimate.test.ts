import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { estimatorFor } from '../../../../lib/core/operations/metering/sampled-estimate.ts'
import { estimateTokens } from '../../../../lib/core/operations/metering/token-estimate.ts'

const corpus = new URL('../../../bench/corpus/', import.meta.url)
const pages = readdirSync(corpus)
  .filter((file) => file.endsWith('.txt'))
  .map((file) => readFileSync(new URL(file, corpus), 'utf8'))

const sum = (texts: readonly string[], estimate: (text: string) => number) =>
  texts.reduce((total, text) => total + estimate(text), 0)
const lengthOf = (texts: readonly string[]) => sum(texts, ({ length }) => length)

/** Returns the middle one of eleven sampled estimates, in relation to one that reads everything. */
function ratio(texts: readonly string[]): number {
  const whole = sum(texts, estimateTokens)
  const ratios = Array.from({ length: 11 }, () => sum(texts, estimatorFor(lengthOf(texts))) / whole)
  return ratios.sort((one, other) => one - other)[5] as number
}

/** Cuts a text into pieces of these lengths, in turn. */
function cut(text: string, lengths: readonly number[]): string[] {
  const pieces: string[] = []
  for (let at = 0, i = 0; at < text.length; i++) {
    const length = lengths[i % lengths.length] as number
    pieces.push(text.slice(at, at + length))
    at += length
  }
  return pieces
}

describe('the estimate of a long request', () => {
  for (const size of [150_000, 330_000, 2_000_000]) {
    const mixed = pages
      .join('\n')
      .repeat(Math.ceil(size / pages.join('').length))
      .slice(0, size)
    for (const [name, lengths] of [
      ['one text', [size]],
      ['long and short messages', [400, 3000, 12_000, 1500]],
      ['parts of words', [3, 7, 12, 1]],
    ] as const)
      it(`is near that of the whole: ${size} characters as ${name}`, () => {
        const texts = cut(mixed, lengths)
        const found = ratio(texts)
        // Parts of words are rounded, each by itself, if all of them are read.
        const most = name === 'parts of words' ? 0.15 : 0.06
        assert.ok(Math.abs(found - 1) < most, `${found}`)
      })
  }

  it('is near it for any position of the costly part, so that no part is cheap', () => {
    const cheap = ' '.repeat(300_000)
    const costly = (pages[0] ?? '').repeat(20).slice(0, 60_000)
    for (const at of [0, 512, 100_000, 299_488]) {
      const found = ratio([cheap.slice(0, at) + costly + cheap.slice(at)])
      assert.ok(found > 0.7 && found < 1.3, `${at}: ${found}`)
    }
  })

  it('finds costly characters in any pattern', () => {
    // Were the samples at known places, a pattern of the same length would hide all of these.
    for (const period of [512, 1024, 2578, 4096]) {
      const unit = `${'\ue000'.repeat(period / 2)}${' '.repeat(period / 2)}`
      const found = ratio([unit.repeat(Math.ceil(400_000 / unit.length))])
      assert.ok(found > 0.75 && found < 1.3, `${period}: ${found}`)
    }
  })

  it('is a whole number of tokens, and covers all of a short request', () => {
    const long = estimatorFor(1_000_000)
    assert.ok(['a', 'b '.repeat(10_000), ''].every((text) => Number.isInteger(long(text))))
    assert.equal(estimatorFor(60_000), estimateTokens)
  })

  it('counts each of many texts of one letter', () => {
    const found = ratio(Array.from({ length: 200_000 }, () => 'x'))
    assert.ok(Math.abs(found - 1) < 0.1, `${found}`)
  })
})
