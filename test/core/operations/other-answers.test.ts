import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  embeddings,
  imageGenerations,
  MAX_TOKENS_PER_IMAGE,
  rerank,
} from '../../../lib/core/operations/index.ts'

type Json = Record<string, unknown>

const NO_ANSWERS = [null, 7, 'x', [], {}, { data: null }, { data: 'x' }, { data: {} }]

describe('an answer with images', () => {
  const read = (data: unknown[], members: Json = {}) => imageGenerations.readAnswer({ data, ...members })

  it('has as many images as came, by their bytes or their address', () => {
    const image = { b64_json: 'AAAA' }
    const link = { url: 'https://a.test/b.png' }
    const { substance, usage, error } = read([image, link, { ...link, b64_json: '' }])
    assert.deepEqual([substance, usage, error], ['output', { images: 3 }, undefined])
    for (const none of [{ b64_json: '', url: '' }, { b64_json: 7 }, { url: null }, {}, null, 'AAAA']) {
      const { substance, usage } = read([none])
      assert.deepEqual([substance, usage.images], ['empty', 0], JSON.stringify(none))
    }
    assert.equal(read([]).substance, 'empty')
  })

  it('failed with the last error where no image was made', () => {
    const errors = [{ error: { code: 'a' } }, { error: { code: 'b' } }, { error: null }]
    assert.deepEqual(read(errors).error, { code: 'b' })
    assert.equal(read([...errors, { url: 'x' }]).error, undefined)
    assert.equal(read([{}]).error, undefined)
  })

  it('has its usage under the names of images or of chats', () => {
    const images = 1
    const of = (usage: unknown) => read([{ url: 'x' }], { usage }).usage
    const details = { cached_tokens: 4 }
    assert.deepEqual(of({ input_tokens: 9, input_tokens_details: details, output_tokens: 5 }), {
      inputTokens: 9,
      cachedInputTokens: 4,
      outputTokens: 5,
      images,
    })
    assert.deepEqual(of({ prompt_tokens: 9, input_tokens_details: null, completion_tokens: 5 }), {
      inputTokens: 9,
      cachedInputTokens: undefined,
      outputTokens: 5,
      images,
    })
    const both = of({ input_tokens: 1, prompt_tokens: 2, output_tokens: 3, completion_tokens: 4 })
    assert.deepEqual([both.inputTokens, both.outputTokens], [1, 3])
    for (const none of [undefined, null, 7, []]) assert.deepEqual(of(none), { images })
  })

  it('is estimated by quality and size, for each image', () => {
    const estimate = (members: Json, count = 1) =>
      read(
        Array.from({ length: count }, () => ({ url: 'x' })),
        members,
      ).estimateOutput()
    assert.deepEqual(
      ['low', 'medium', 'high', 'auto', undefined].map((quality) => estimate({ quality })),
      [272, 1056, 4160, 1056, 1056],
    )
    assert.equal(estimate({ quality: 'low', size: '1024x1024' }), 272)
    assert.equal(estimate({ quality: 'low', size: '1536x1024' }), 408)
    assert.equal(estimate({ quality: 'low', size: '1536x1024' }, 3), 3 * 408)
    assert.equal(estimate({}, 0), 0)
    // What one image costs at most: the largest, at the highest quality.
    assert.equal(MAX_TOKENS_PER_IMAGE, estimate({ quality: 'high', size: '1536x1024' }))
  })

  it('is none without a list', () => {
    for (const json of NO_ANSWERS)
      assert.throws(() => imageGenerations.readAnswer(json), /^SyntaxError: the answer has no "data"$/)
  })
})

describe('an answer with embeddings', () => {
  const read = (data: unknown[], usage?: unknown) => embeddings.readAnswer({ data, usage })

  it('is output where each item has a vector', () => {
    const vectors = [{ embedding: [0.5] }, { embedding: 'AAAA' }]
    for (const data of [vectors, vectors.slice(0, 1), vectors.slice(1)])
      assert.equal(read(data).substance, 'output')
    for (const embedding of [[], '', null, undefined, 7, { length: 1 }])
      for (const data of [[{ embedding }], [...vectors, { embedding }], [{ embedding }, ...vectors]])
        assert.equal(read(data).substance, 'empty', JSON.stringify(data))
    assert.equal(read([]).substance, 'empty')
  })

  it('has input only, which some upstreams tell as the total', () => {
    const input = (usage: unknown) => {
      const reading = read([{ embedding: [1] }], usage)
      assert.equal(reading.estimateOutput(), 0)
      assert.equal(reading.usage.outputTokens, 0)
      return reading.usage.inputTokens
    }
    assert.equal(input({ prompt_tokens: 7, total_tokens: 9 }), 7)
    assert.equal(input({ total_tokens: 9 }), 9)
    for (const none of [undefined, null, 7, {}]) assert.equal(input(none), undefined)
  })

  it('is none without a list', () => {
    for (const json of NO_ANSWERS)
      assert.throws(() => embeddings.readAnswer(json), /^SyntaxError: the answer has no "data"$/)
  })
})

describe('an answer with ranked documents', () => {
  const read = (members: Json) => rerank.readAnswer({ results: [{ index: 0 }], ...members })

  it('has them under either name', () => {
    assert.equal(read({}).substance, 'output')
    assert.equal(read({ results: null, data: [{ index: 0 }] }).substance, 'output')
    assert.equal(read({ data: [] }).substance, 'output')
    for (const results of [[], [null, 'x']]) assert.equal(read({ results }).substance, 'empty')
    for (const json of NO_ANSWERS)
      assert.throws(() => rerank.readAnswer(json), /^SyntaxError: the answer has no "results"$/)
  })

  it('has searches or tokens, wherever they are told', () => {
    const of = (members: Json) => {
      const reading = read(members)
      assert.equal(reading.estimateOutput(), 0)
      assert.equal(reading.usage.outputTokens, 0)
      return [reading.usage.searchUnits, reading.usage.inputTokens]
    }
    const meta = { billed_units: { search_units: 2, input_tokens: 30 }, tokens: { input_tokens: 40 } }
    const usage = { search_units: 3, prompt_tokens: 10, total_tokens: 20 }
    assert.deepEqual(of({ usage, meta }), [2, 10])
    assert.deepEqual(of({ usage }), [3, 10])
    assert.deepEqual(of({ usage: { total_tokens: 20 }, meta }), [2, 20])
    assert.deepEqual(of({ meta }), [2, 30])
    assert.deepEqual(of({ meta: { tokens: { input_tokens: 40 } } }), [undefined, 40])
    for (const none of [undefined, null, 7, 'x'])
      for (const members of [{ usage: none, meta: none }, { meta: { billed_units: none, tokens: none } }])
        assert.deepEqual(of(members), [undefined, undefined], JSON.stringify(members))
  })
})
