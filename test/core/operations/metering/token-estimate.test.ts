import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { countTokens, decode, encode } from 'gpt-tokenizer/encoding/o200k_base'
import {
  estimateTokens,
  jsonText,
  TOKENS_PER_MESSAGE,
  TOKENS_PER_REQUEST,
  windowNeeded,
} from '../../../../lib/core/operations/metering/token-estimate.ts'
import { assertCosts } from './cost-of.ts'

// None of these texts was used to fit the estimator's constants, but for the Russian one, which moved the Cyrillic cost.
function sample(name: string): string {
  return readFileSync(new URL(`../../../bench/corpus/${name}.txt`, import.meta.url), 'utf8')
}

function deviation(text: string, truth = countTokens(text)): number {
  return estimateTokens(text) / truth - 1
}

function assertWithin(text: string, tolerance: number): void {
  const off = deviation(text)
  assert.ok(Math.abs(off) <= tolerance, `${(off * 100).toFixed(1)} % off, allowed ${tolerance * 100} %`)
}

// A generator with a seed, so that a failure can be run again (numerical recipes' constants).
function randomSource(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 0x1_0000_0000) * below)
  }
}

function randomText(alphabet: string, length: number): string {
  const random = randomSource(length)
  return Array.from({ length }, () => alphabet[random(alphabet.length)]).join('')
}

const LOWER = 'abcdefghijklmnopqrstuvwxyz'
const BASE64 = `${LOWER.toUpperCase()}${LOWER}0123456789+/`

describe('the token estimate of a text is close to the count of o200k', () => {
  for (const name of ['english', 'typescript', 'python', 'chinese', 'json', 'numbers'])
    it(`${name}: within 10 %`, () => assertWithin(sample(name), 0.1))
  for (const name of ['german', 'japanese', 'korean', 'russian', 'emoji'])
    it(`${name}: within 20 %`, () => assertWithin(sample(name), 0.2))

  for (const name of ['english', 'typescript', 'python', 'chinese', 'json'])
    it(`${name}, in passages of 300 characters: within 15 % on average`, () => {
      const passages = sample(name).match(/[\s\S]{300}/g) ?? []
      assert.ok(passages.length >= 2)
      const mean = passages.reduce((sum, passage) => sum + Math.abs(deviation(passage)), 0) / passages.length
      assert.ok(mean <= 0.15, `${(mean * 100).toFixed(1)} %`)
    })
})

describe('the token estimate of text without words is roughly right', () => {
  const cases: [name: string, text: string, tolerance: number][] = [
    ['base64', randomText(BASE64, 4000), 0.15],
    ['hexadecimal', randomText('0123456789abcdef', 4000), 0.25],
    ['letters at random', randomText(LOWER, 4000), 0.25],
    ['digits', randomText('0123456789', 4000), 0.05],
    ['one letter repeated', 'a'.repeat(4000), 0.3],
    ['words run together', 'thequickbrownfoxjumpsoverthelazydog'.repeat(20), 0.3],
    ['spaces', ' '.repeat(4000), 0.3],
    ['tabs', '\t'.repeat(4000), 0.3],
    ['line breaks', '\n'.repeat(4000), 0.3],
    ['a ruler', '-'.repeat(800), 0.5],
    ['a drawn line', '─'.repeat(800), 0.5],
    ['punctuation at random', randomText('!"#$%&()*+,-./:;<=>?@[]^_`{|}~', 4000), 0.25],
  ]
  for (const [name, text, tolerance] of cases) it(name, () => assertWithin(text, tolerance))
})

describe('the token estimate of a stream, summed over its deltas', () => {
  it('counts one for each delta of one token', () => {
    for (const delta of [' hello', '\n', 'the', " don't", '你好', '```', '  ', '.', 'ization'])
      assert.equal(estimateTokens(delta), 1, JSON.stringify(delta))
    assert.equal(estimateTokens("'m doing well"), 3)
  })

  for (const name of ['english', 'typescript', 'python', 'chinese', 'json', 'german', 'korean', 'russian'])
    for (const most of [1, 4])
      it(`${name}, deltas of 1 to ${most} tokens: within 20 %`, () => {
        const tokens = encode(sample(name))
        const random = randomSource(most)
        let sum = 0
        for (let at = 0; at < tokens.length; ) {
          const size = 1 + random(most)
          sum += estimateTokens(decode(tokens.slice(at, at + size)))
          at += size
        }
        const off = sum / tokens.length - 1
        assert.ok(Math.abs(off) <= 0.2, `${(off * 100).toFixed(1)} % off`)
      })
})

describe('the token estimate of any string', () => {
  const anyString = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 300 }),
    fc.string({ unit: 'grapheme', maxLength: 300 }),
    fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 300 }).map((u) => String.fromCharCode(...u)),
    fc
      .array(
        fc.constantFrom(' ', '\n', 'a', 'B', '7', "'", '(', 'é', 'я', '好', 'の', '한', '\ud83d', '\ude00'),
        {
          maxLength: 300,
        },
      )
      .map((parts) => parts.join('')),
  )

  it('is a whole number, at least 1 unless the string is empty, and at most 3 for each UTF-16 unit', () => {
    assert.equal(estimateTokens(''), 0)
    fc.assert(
      fc.property(anyString, (text) => {
        const tokens = estimateTokens(text)
        assert.ok(Number.isSafeInteger(tokens))
        assert.ok(tokens >= (text === '' ? 0 : 1))
        assert.ok(tokens <= 3 * text.length)
      }),
      { numRuns: 150 },
    )
  })

  it('accepts halves of surrogate pairs', () => {
    for (const text of ['\ud83d', '\ude00', '\ude00\ud83d', 'a\ud83db', '\ud83d\ud83d\ude00\ude00'])
      assert.ok(estimateTokens(text) >= 1)
  })

  it('is the same every time, with any estimates in between', () => {
    fc.assert(
      fc.property(anyString, anyString, (text, other) => {
        const first = estimateTokens(text)
        estimateTokens(other)
        assert.equal(estimateTokens(text), first)
      }),
    )
  })

  it('is roughly the sum of its parts when cut between lines', () => {
    const line = fc.constantFrom(...sample('english').split('\n'), ...sample('python').split('\n'))
    const lines = fc.array(line, { minLength: 1, maxLength: 20 }).map((parts) => `${parts.join('\n')}\nx`)
    fc.assert(
      fc.property(lines, lines, (left, right) => {
        const parts = estimateTokens(left) + estimateTokens(right)
        assert.ok(Math.abs(estimateTokens(left + right) - parts) <= 3)
      }),
    )
  })

  it('grows in proportion with a long text', () => {
    const page = sample('english')
    const book = page.repeat(100)
    assert.ok(Math.abs(estimateTokens(book) / (100 * estimateTokens(page)) - 1) < 0.01)
  })
})

it('a chat adds four tokens for each message and three for the request', () => {
  assert.equal(TOKENS_PER_MESSAGE, 4)
  assert.equal(TOKENS_PER_REQUEST, 3)
})

it('a request needs a context window for the certain part of its input, and all of its output', () => {
  assert.deepEqual([windowNeeded(100, 7), windowNeeded(101, undefined), windowNeeded(0, 0)], [92, 86, 0])
})

describe('the estimate of a text', () => {
  it('of 16 characters or fewer needs a fraction of 0.7 for one token more, a longer one a half', () => {
    const rows: [text: string, cost: number, tokens: number][] = [
      ['你好好好好', 3.65, 3],
      ['你好好好好好好好好好好好', 8.76, 9],
      ['你好。', 2.21, 2],
      ['私の', 1.6, 1],
      ['好'.repeat(16), 11.68, 11],
      ['好'.repeat(17), 12.41, 12],
      ['好'.repeat(18), 13.14, 13],
      [`${'好'.repeat(16)}。。`, 13.18, 13],
      [`${'好'.repeat(17)}のの`, 17.75, 18],
      ['の'.repeat(18), 11.34, 11],
      ['の'.repeat(20), 12.6, 13],
      ['の', 0.63, 1],
      ['\ude00', 0.6, 1],
    ]
    assertCosts(rows.map(([text, cost]) => [text, cost] as const))
    for (const [text, , tokens] of rows) assert.equal(estimateTokens(text), tokens, text)
  })

  it('longer than a window is the sum of the windows', () => {
    assert.equal(estimateTokens('→←'.repeat(50_000)), 100_000)
    for (const length of [16_383, 16_384, 16_385, 32_768])
      assert.equal(estimateTokens('→←'.repeat(length)), 2 * length)
    assert.equal(estimateTokens('1'.repeat(32_768 * 3)), 3 * Math.ceil(32_768 / 3))
  })
})

describe('the text that a model reads of a JSON value', () => {
  it('is the text itself, or the JSON of an object or an array', () => {
    assert.equal(jsonText('a "b"'), 'a "b"')
    assert.equal(jsonText({ a: [1, 'b'] }), '{"a":[1,"b"]}')
    assert.equal(jsonText([true]), '[true]')
  })

  it('is empty for other values', () => {
    for (const value of [undefined, null, 7, true]) assert.equal(jsonText(value), '')
  })

  it('counts like a file if it is nested too deep to be serialised', () => {
    let nested: unknown = 1
    for (let i = 0; i < 200_000; i++) nested = [nested]
    assert.equal(estimateTokens(jsonText(nested)), 4001)
  })
})
