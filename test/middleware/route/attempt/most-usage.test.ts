import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { used } from '../support/metered-usage.ts'

const ANY = Number.MAX_SAFE_INTEGER

describe('where a call holds no money, as its model is free, what it has used is', () => {
  it('an output of ten million tokens at most, of each answer, however much was asked for', () => {
    for (const answers of [1, 3]) {
      const most = answers * 10_000_000
      const output = (outputTokens: number) => {
        const counted = used(
          'tokens',
          { inputTokens: 40, outputTokens },
          {},
          { answers, maxOutputTokens: ANY },
        )
        return [counted.outputTokens, counted.source]
      }
      assert.deepEqual(output(most), [most, 'measured'])
      for (const reported of [most + 1, 9e11, ANY]) assert.deepEqual(output(reported), [most, 'bounded'])
    }
  })

  it('a thousand web searches at most, however many were asked for: the operator may pay for them', () => {
    for (const asked of [0, 3, ANY]) {
      const searches = (webSearches: number) => {
        const reported = { inputTokens: 5, outputTokens: 7, webSearches }
        const counted = used('tokens', reported, {}, { webSearches: asked })
        return [counted.webSearches, counted.source]
      }
      assert.deepEqual(searches(1000), [1000, 'measured'])
      for (const reported of [1001, 9e11, ANY]) assert.deepEqual(searches(reported), [1000, 'bounded'])
    }
  })
})
