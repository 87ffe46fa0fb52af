import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { estimateTokens, jsonText } from '../../../lib/core/operations/tokens/token-estimate.ts'
import { assertCosts } from './cost-of.ts'

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

describe('what a model reads of a JSON value', () => {
  it('is a text as it is, and an object or an array as it is written', () => {
    assert.equal(jsonText('a "b"'), 'a "b"')
    assert.equal(jsonText({ a: [1, 'b'] }), '{"a":[1,"b"]}')
    assert.equal(jsonText([true]), '[true]')
  })

  it('is nothing of other values', () => {
    for (const value of [undefined, null, 7, true]) assert.equal(jsonText(value), '')
  })

  it('counts like a file where it is nested too deep to be written', () => {
    let nested: unknown = 1
    for (let i = 0; i < 200_000; i++) nested = [nested]
    assert.equal(estimateTokens(jsonText(nested)), 4001)
  })
})
