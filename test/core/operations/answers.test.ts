import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { embeddings } from '../../../lib/core/operations/embeddings.ts'
import { imageGenerations } from '../../../lib/core/operations/images/image-generations.ts'
import { MAX_TOKENS_PER_IMAGE } from '../../../lib/core/operations/images/images-answer.ts'
import {
  estimateTokens,
  messages,
  OPERATIONS,
  responses,
  storedResponses,
} from '../../../lib/core/operations/index.ts'
import { rerank } from '../../../lib/core/operations/rerank.ts'
import { responseIn } from '../../support/responses-upstream.ts'

type Json = Record<string, unknown>

const NO_ANSWERS = [null, 7, 'x', [], {}, { data: null }, { data: 'x' }, { data: {} }]

describe('an answer with images', () => {
  const read = (data: unknown[], members: Json = {}) => imageGenerations.readAnswer({ data, ...members })

  it('has as many images as the upstream sent, as bytes or as URLs', () => {
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

  it('fails with the last error if no image was made', () => {
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
    // One image costs most in the largest size, at the highest quality.
    assert.equal(MAX_TOKENS_PER_IMAGE, estimate({ quality: 'high', size: '1536x1024' }))
  })

  it('is invalid without a list', () => {
    for (const json of NO_ANSWERS)
      assert.throws(() => imageGenerations.readAnswer(json), /^SyntaxError: the answer has no "data"$/)
  })
})

describe('an answer with embeddings', () => {
  const read = (data: unknown[], usage?: unknown) => embeddings.readAnswer({ data, usage })

  it('has output if each item has a vector', () => {
    const vectors = [{ embedding: [0.5] }, { embedding: 'AAAA' }]
    for (const data of [vectors, vectors.slice(0, 1), vectors.slice(1)])
      assert.equal(read(data).substance, 'output')
    for (const embedding of [[], '', null, undefined, 7, { length: 1 }])
      for (const data of [[{ embedding }], [...vectors, { embedding }], [{ embedding }, ...vectors]])
        assert.equal(read(data).substance, 'empty', JSON.stringify(data))
    assert.equal(read([]).substance, 'empty')
  })

  it('has input only, which some upstreams report as the total', () => {
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

  it('is invalid without a list', () => {
    for (const json of NO_ANSWERS)
      assert.throws(() => embeddings.readAnswer(json), /^SyntaxError: the answer has no "data"$/)
  })
})

describe('an answer with ranked documents', () => {
  const read = (members: Json) => rerank.readAnswer({ results: [{ index: 0 }], ...members })

  it('has its documents under either name', () => {
    assert.equal(read({}).substance, 'output')
    assert.equal(read({ results: null, data: [{ index: 0 }] }).substance, 'output')
    assert.equal(read({ data: [] }).substance, 'output')
    for (const results of [[], [null, 'x']]) assert.equal(read({ results }).substance, 'empty')
    for (const json of NO_ANSWERS)
      assert.throws(() => rerank.readAnswer(json), /^SyntaxError: the answer has no "results"$/)
  })

  it('has searches or tokens, in any place where upstreams report them', () => {
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

const TEXT = 'A sentence of some words that count.'
const COUNT = estimateTokens(TEXT)

describe('a message', () => {
  const read = (...content: unknown[]) => messages.readAnswer({ content })

  it('has output if a block has content', () => {
    for (const block of [
      { type: 'text', text: 'a' },
      { type: 'thinking', thinking: 'a' },
      { type: 'redacted_thinking' },
      { type: 'tool_use', name: 'f' },
      {},
    ])
      assert.equal(read(block).substance, 'output', JSON.stringify(block))
  })

  it('is empty if no block has content', () => {
    for (const block of [
      { type: 'text', text: '' },
      { type: 'text' },
      { type: 'text', text: 7 },
      { type: 'thinking', thinking: '' },
      { type: 'thinking' },
      null,
      'text',
    ])
      assert.equal(read(block).substance, 'empty', JSON.stringify(block))
    assert.equal(read().substance, 'empty')
  })

  it('is counted by its texts, and by name and input of calls', () => {
    const count = (...content: unknown[]) => read(...content).estimateOutput()
    assert.equal(count({ type: 'text', text: TEXT }, { type: 'thinking', thinking: TEXT }), 2 * COUNT)
    assert.equal(count({ type: 'tool_use', name: 'f', input: { a: 1 } }), estimateTokens('f{"a":1}'))
    assert.equal(count({ type: 'tool_use', name: 7 }, {}), 0)
  })

  it('is invalid without content', () => {
    for (const json of [null, 'text', {}, { content: 'text' }])
      assert.throws(() => messages.readAnswer(json), /^SyntaxError: the answer has no "content"$/)
  })
})

describe('a response', () => {
  const read = (output: unknown[], members: object = {}) => responses.readAnswer({ output, ...members })
  const text = { type: 'message', content: [{ type: 'output_text', text: TEXT }] }
  const reasoning = { type: 'reasoning', name: TEXT, summary: [{ text: TEXT }], content: [{ text: TEXT }] }

  it('is counted by its texts, its reasoning, and the texts of its calls', () => {
    assert.equal(read([text]).estimateOutput(), COUNT)
    assert.equal(read([reasoning]).estimateOutput(), estimateTokens(TEXT + TEXT))
    const call = { type: 'function_call', name: 'f', arguments: '{}', id: TEXT, status: TEXT }
    assert.equal(read([call]).estimateOutput(), estimateTokens('f{}'))
    const custom = { type: 'any', input: 'a', code: 'b', action: { c: 1 }, queries: ['d'], operation: 'e' }
    assert.equal(read([custom]).estimateOutput(), estimateTokens('ab{"c":1}["d"]e'))
    assert.equal(read([text, null, 'x', text]).estimateOutput(), 2 * COUNT)
  })

  it('has output if an item has text, calls a tool, or can be sent back', () => {
    const outputs = [
      text,
      reasoning,
      { type: 'function_call' },
      { type: 'reasoning', encrypted_content: 'x' },
    ]
    for (const item of outputs) assert.equal(read([item]).substance, 'output', JSON.stringify(item))
    const empty = [
      { type: 'message', content: [{ type: 'output_text', text: '' }] },
      { type: 'message', content: 'text' },
      { type: 'mcp_list_tools' },
    ]
    for (const item of empty) assert.equal(read([item]).substance, 'empty', JSON.stringify(item))
    for (const encrypted_content of ['', 7, undefined])
      assert.equal(read([{ type: 'reasoning', encrypted_content, summary: [] }]).substance, 'no_output')
  })

  it('is a refusal by a part of a message, and filtered if it was stopped without text', () => {
    const refusal = { type: 'message', content: [{ type: 'refusal', refusal: 'No.' }] }
    assert.equal(read([text, refusal]).substance, 'refusal')
    assert.equal(read([refusal]).estimateOutput(), estimateTokens('No.'))
    const filtered = { incomplete_details: { reason: 'content_filter' } }
    assert.equal(read([], filtered).substance, 'filtered')
    assert.equal(read([text], filtered).substance, 'output')
    for (const incomplete_details of [null, 'content_filter'])
      assert.equal(read([], { incomplete_details }).substance, 'empty')
    assert.equal(read([], { incomplete_details: { reason: 'max_output_tokens' } }).substance, 'no_output')
  })

  it('fails by its status, with the error that it names', () => {
    assert.equal(read([text], { error: { code: 'x' } }).error, undefined)
    assert.deepEqual(read([], { status: 'failed', error: { code: 'x' } }).error, { code: 'x' })
    assert.deepEqual(read([], { status: 'cancelled', error: null }).error, {
      message: 'the response has the status "cancelled"',
    })
  })

  it('is stored under its id, unless the line declares that it stores none', () => {
    const kept = (members: object) => responseIn(read([text], members).kept)
    assert.equal(kept({ id: 'resp_1' }), 'resp_1')
    assert.equal(kept({ id: 'x'.repeat(1024), store: true }), 'x'.repeat(1024))
    for (const members of [
      { id: 'resp_1', store: false },
      { id: '' },
      { id: 7 },
      {},
      { id: 'x'.repeat(1025) },
    ])
      assert.equal(kept(members), undefined)
  })
})

describe('a stored response', () => {
  it('can be any object, and costs nothing', () => {
    const { substance, usage, estimateOutput } = storedResponses.readAnswer({ id: 'resp_1' })
    assert.deepEqual([substance, usage, estimateOutput()], ['output', {}, 0])
    for (const json of [null, 'text', 7, undefined])
      assert.throws(() => storedResponses.readAnswer(json), SyntaxError)
    assert.equal(storedResponses.priceUnit, 'none')
    assert.equal(OPERATIONS.includes(storedResponses), false)
  })
})

describe('a count of tokens', () => {
  it('is an answer of its own, and costs nothing', () => {
    const operation = OPERATIONS.find(({ path }) => path === '/v1/messages/count_tokens')
    assert.ok(operation)
    const { substance, usage, estimateOutput } = operation.readAnswer({ input_tokens: 0 })
    assert.deepEqual([substance, usage, estimateOutput()], ['output', {}, 0])
    for (const json of [null, {}, { input_tokens: -1 }, { input_tokens: '1' }])
      assert.throws(() => operation.readAnswer(json), SyntaxError)
  })
})
