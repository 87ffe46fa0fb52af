import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { shifted } from '../../../examples/gateway/convert/litellm/prices.ts'
import { convert, convertOne, notesOn } from './converted.ts'

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

  test('for calls with more input are tiers', () => {
    const { model, notes } = convertOne(
      '{ model: openai/x, input_cost_per_token: 1e-6, input_cost_per_token_above_200k_tokens: 2e-6 }',
      `{ output_cost_per_token: 4e-6, input_cost_per_token_above_200k_tokens: 9, output_cost_per_token_above_200k_tokens: 6e-6,
        cache_creation_input_token_cost_above_1hr_above_200k_tokens: 3e-6, cache_read_input_token_cost_above_128000_tokens: 0 }`,
    )
    assert.deepEqual(model?.price, {
      inputPerMillion: '1',
      outputPerMillion: '4',
      tiers: [
        {
          aboveInputTokens: 200_000,
          inputPerMillion: '2',
          outputPerMillion: '6',
          cacheWrite1hPerMillion: '3',
        },
        { aboveInputTokens: 128_000, cachedInputPerMillion: '0' },
      ],
    })
    assert.deepEqual(notesOn(notes, 'model_list[0].model_info'), [])
  })

  test('in a tier of service are tiers', () => {
    const { model, notes } = convertOne(
      '{ model: openai/x, input_cost_per_token: 1e-6, input_cost_per_token_priority: 2e-6 }',
      `{ input_cost_per_token_priority: 9, output_cost_per_token: 4e-6, output_cost_per_token_priority: 8e-6, output_cost_per_token_flex: 2e-6,
        input_cost_per_token_above_272k_tokens: 3e-6, input_cost_per_token_above_272k_tokens_priority: 6e-6,
        cache_read_input_token_cost_priority: 2e-7 }`,
    )
    assert.deepEqual(model?.price, {
      inputPerMillion: '1',
      outputPerMillion: '4',
      tiers: [
        {
          serviceTier: 'priority',
          cachedInputPerMillion: '0.2',
          inputPerMillion: '2',
          outputPerMillion: '8',
        },
        { aboveInputTokens: 272_000, inputPerMillion: '3' },
        { aboveInputTokens: 272_000, serviceTier: 'priority', inputPerMillion: '6' },
        { serviceTier: 'flex', outputPerMillion: '2' },
      ],
    })
    assert.deepEqual(notesOn(notes, 'model_list[0].model_info'), [])
  })

  const SEARCHES: readonly [written: string, price: string | undefined, notes: number][] = [
    ['{ search_context_size_low: 0.01, search_context_size_medium: 0.01 }', '0.01', 0],
    ['{ search_context_size_low: 0.03, search_context_size_high: 0.05 }', '0.05', 1],
    ['{ search_context_size_low: much }', undefined, 1],
    ['{}', undefined, 0],
  ]
  for (const [written, price, count] of SEARCHES)
    test(`of web searches are the dearest: ${written}`, () => {
      const { model, notes } = convertOne(
        '{ model: openai/x }',
        `{ search_context_cost_per_query: ${written} }`,
      )
      assert.deepEqual(model?.price, price && { perWebSearch: price })
      assert.equal(notesOn(notes, 'model_list[0].model_info.search_context_cost_per_query').length, count)
    })

  test('are the same in another order of the file', () => {
    const [one, other] = [
      'input_cost_per_token: 1e-6, output_cost_per_token: 2e-6, input_cost_per_token_above_200k_tokens: 3e-6',
      'input_cost_per_token_above_200k_tokens: 3e-6, output_cost_per_token: 2e-6, input_cost_per_token: 1e-6',
    ]
    const { config } = convert(`model_list:
  - { model_name: a, litellm_params: { model: openai/x, ${one} } }
  - { model_name: a, litellm_params: { model: groq/x, ${other} } }`)
    assert.ok(config.models[0]?.price)
    assert.deepEqual(
      config.lines.map(({ price }) => price),
      [undefined, undefined],
    )
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
    [9223.372035, 6, '9223372035', false],
    [9223.372036, 6, undefined, false],
    [9223372036, 0, undefined, false],
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
