import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { shifted } from '../../../examples/gateway/convert/litellm/prices.ts'
import { convertOne } from './converted.ts'

describe('the prices of LiteLLM', () => {
  test('are per million tokens, exactly; those of litellm_params count first', () => {
    const { model } = convertOne(
      '{ model: openai/x, input_cost_per_token: 0.00000015, output_cost_per_token: "6e-07" }',
      '{ input_cost_per_token: 1, cache_read_input_token_cost: 7.5e-08, cache_creation_input_token_cost: 0 }',
    )
    assert.deepEqual(model?.price, {
      inputPerMillion: '0.15',
      outputPerMillion: '0.6',
      cachedInputPerMillion: '0.075',
      cacheWritePerMillion: '0',
    })
    const image = convertOne('{ model: openai/dall-e-3 }', '{ output_cost_per_image: 0.04 }')
    assert.deepEqual(image.model?.price, { perImage: '0.04' })
    const rerank = convertOne('{ model: cohere/rerank-v3.5 }', '{ input_cost_per_query: 0.002 }')
    assert.deepEqual(rerank.model?.price, { perSearchUnit: '0.002' })
  })

  const SHIFTED: readonly [value: number, shift: number, text: string | undefined, isRounded: boolean][] = [
    [0, 6, '0', false],
    [1.5e-7, 6, '0.15', false],
    [0.0000025, 6, '2.5', false],
    [3e-6, 6, '3', false],
    [0.1, 6, '100000', false],
    [1, 0, '1', false],
    [1.2345678901e-7, 6, '0.123456790', true],
    [1e-300, 6, '0.000000001', true],
    [1e300, 6, undefined, false],
  ]
  for (const [value, shift, text, isRounded] of SHIFTED)
    test(`${value} × 10^${shift} is ${text}`, () => {
      const expected = text?.replace(/(\.\d*?)0+$/, '$1')
      assert.deepEqual(
        shifted(value, shift),
        expected === undefined ? undefined : { text: expected, isRounded },
      )
    })
})
