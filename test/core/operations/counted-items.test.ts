import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'

type Json = Record<string, unknown>

const PER_REQUEST = 3
const PER_MESSAGE = 4
const PER_IMAGE = 1200
const PER_FILE = 4000
const PER_TEXT = 1_000_000

/** The facts of a body, with an estimator that takes note of what it reads. */
function factsOf(path: string, json: Json, estimate = (_text: string) => PER_TEXT) {
  const operation = OPERATIONS.find((one) => one.path === path)
  assert.ok(operation, path)
  const read: string[] = []
  const facts = operation.facts(json, Buffer.from(JSON.stringify(json)), (text) => {
    read.push(text)
    return estimate(text)
  })
  return { ...facts, read, constant: facts.estimatedInputTokens % PER_TEXT }
}

describe('what is counted of a request for a response', () => {
  const response = (members: Json) => factsOf('/v1/responses', { model: 'm', ...members })
  const items = (...input: Json[]) => response({ input })

  it('are instructions and input, each a message', () => {
    const { read, constant, messages } = response({ instructions: 'Be brief.', input: 'Hi' })
    assert.deepEqual(read, ['Be brief.', 'Hi'])
    assert.deepEqual([constant, messages], [PER_REQUEST + 2 * PER_MESSAGE, 2])
    const listed = response({ instructions: [{ role: 'system', content: 'a' }], input: null })
    assert.deepEqual([listed.read, listed.messages], [['a'], 1])
  })

  it('are items, of which those without a type are messages', () => {
    const { read, constant, messages } = items(
      { role: 'user', content: 'one' },
      { type: null, role: 'user', content: 'two' },
      { type: 'message', role: 'user', id: 'msg_1', status: 'completed', phase: 'x', content: 'three' },
      { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' },
    )
    assert.deepEqual(read, ['one', 'two', 'three', 'f', '{}'])
    assert.deepEqual([constant, messages], [PER_REQUEST + 4 * PER_MESSAGE, 3])
  })

  it('are parts of items: texts, refusals, images, and anything else as a file', () => {
    const parts = [
      { type: 'input_text', text: 'one' },
      { type: 'refusal', refusal: 'no' },
      { type: 'input_image', text: 'not read' },
      { type: 'input_file', file_id: 'f' },
      null,
      'text',
    ]
    const { read, constant, images, featureParams } = items(
      { role: 'user', content: parts },
      { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_image' }] },
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'why' }] },
      { type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot' } },
    )
    assert.deepEqual(read, ['one', 'no', 'why'])
    assert.equal(constant, PER_REQUEST + 4 * PER_MESSAGE + 3 * PER_IMAGE + PER_FILE)
    assert.equal(images, 3)
    assert.equal(featureParams?.get('vision'), 'input[0].content[2]')
    const screen = items({ type: 'computer_call_output', output: { type: 'computer_screenshot' } })
    assert.equal(screen.featureParams?.get('vision'), 'input[0].output')
  })

  it('is sealed reasoning by its length, five characters a token', () => {
    const sealed = (encrypted_content: unknown) => {
      const { constant, read } = items({ type: 'reasoning', summary: [], encrypted_content })
      assert.deepEqual(read, [])
      return constant - PER_REQUEST - PER_MESSAGE
    }
    assert.deepEqual(['', 'a', 'abcde', 'abcdef', null, 7].map(sealed), [0, 1, 1, 2, 0, 0])
  })

  it('are the tools, a prediction and a schema as they are written', () => {
    const tools = [{ type: 'function' }, { type: 'web_search' }]
    const prediction = { type: 'content' }
    const text = { format: { type: 'json_schema' } }
    const facts = response({ input: 'Hi', tools, prediction, text })
    assert.deepEqual(facts.read, [
      'Hi',
      JSON.stringify(tools),
      JSON.stringify(prediction),
      JSON.stringify(text),
    ])
    assert.equal(facts.tools, 2)
    assert.deepEqual(response({ input: 'Hi', text: { format: { type: 'json_object' } } }).read, ['Hi'])
    assert.equal(response({ input: 'Hi' }).tools, 0)
  })

  it('asks for features by name', () => {
    const asked = (members: Json) =>
      Object.fromEntries(response({ input: 'Hi', ...members }).featureParams ?? [])
    assert.deepEqual(asked({ reasoning: { effort: 'none', summary: 'auto' } }), { reasoning: 'reasoning' })
    assert.deepEqual(asked({ reasoning: { effort: 'none', summary: null } }), {})
    assert.deepEqual(asked({ reasoning: { effort: 'low' } }), { reasoning: 'reasoning' })
    assert.deepEqual(asked({ reasoning: null, text: { format: null }, tools: null, stream: null }), {})
    assert.deepEqual(
      asked({ stream: true, tools: [{ type: 'a' }], text: { format: { type: 'json_object' } } }),
      {
        tools: 'tools',
        stream: 'stream',
        json: 'text.format',
      },
    )
  })

  it('is one answer, streamed or not, of so much output at most', () => {
    const { model, stream, answers, maxOutputTokens } = response({
      input: 'Hi',
      stream: true,
      max_output_tokens: 9,
    })
    assert.deepEqual([model, stream, answers, maxOutputTokens], ['m', true, 1, 9])
    const other = response({ input: 'Hi', max_output_tokens: null, truncation: 'disabled' })
    assert.deepEqual(
      [other.stream, other.maxOutputTokens, 'windowTokens' in other],
      [false, undefined, false],
    )
  })
})

describe('what is counted of texts to be embedded', () => {
  const embedding = (input: unknown, members: Json = {}) =>
    factsOf('/v1/embeddings', { model: 'm', input, ...members }, ({ length }) => length)

  it('is each text, of which the longest must fit', () => {
    const of = (input: unknown) => {
      const { estimatedInputTokens, windowTokens } = embedding(input)
      return [estimatedInputTokens, windowTokens]
    }
    assert.deepEqual(of('four'), [4, 4])
    assert.deepEqual(of(['four', 'one', 'sixsix']), [13, 6])
    assert.deepEqual(of([7, 8, 9]), [3, 3])
    assert.deepEqual(of([[7], [7, 8, 9], [7, 8]]), [6, 3])
  })

  it('is one answer without output', () => {
    const { model, stream, answers, messages, tools, images, maxOutputTokens, features } = embedding('a')
    assert.deepEqual([model, stream, answers, messages, tools, images], ['m', false, 1, 0, 0, 0])
    assert.deepEqual([maxOutputTokens, features?.size ?? 0], [undefined, 0])
  })
})

describe('what is counted of documents to be ranked', () => {
  const rerank = (query: string, documents: unknown[]) =>
    factsOf('/v1/rerank', { model: 'm', query, documents }, (text) => Number(text) || text.length)

  it('is the query with each document, of which the longest pair must fit', () => {
    const { read, estimatedInputTokens, windowTokens } = rerank('10', [
      '20',
      { text: '40', title: 'x' },
      '30',
    ])
    assert.deepEqual(read, ['10', '20', '40', '30'])
    assert.deepEqual([estimatedInputTokens, windowTokens], [30 + 50 + 40, 50])
  })

  it('is all of a document without a text', () => {
    assert.deepEqual(rerank('1', [{ title: 'a', text: 7 }]).read, ['1', '{"title":"a","text":7}'])
  })

  it('is a search for each hundred documents, long ones as several', () => {
    const units = (query: string, document: string, count: number) =>
      rerank(
        query,
        Array.from({ length: count }, () => document),
      ).units
    assert.deepEqual([units('1', '1', 1), units('1', '1', 100), units('1', '1', 101)], [1, 1, 2])
    assert.deepEqual([units('1', '499', 100), units('1', '500', 50), units('1', '500', 51)], [1, 1, 2])
    assert.deepEqual([units('500', '500', 50), units('500', '501', 34)], [1, 2])
  })
})

describe('what is counted of images to be made', () => {
  const images = (members: Json) =>
    factsOf('/v1/images/generations', { model: 'm', prompt: 'A cat', ...members })

  it('are as many as are asked for, and the prompt', () => {
    const { read, estimatedInputTokens, units, answers, messages, tools, stream } = images({ n: 3 })
    assert.deepEqual([read, estimatedInputTokens, units, answers], [['A cat'], PER_TEXT, 3, 3])
    assert.deepEqual([messages, tools, images({}).images, stream], [0, 0, 0, false])
    assert.deepEqual([images({}).units, images({ n: null }).answers], [1, 1])
    assert.equal(images({}).maxOutputTokens, undefined)
  })
})

describe('a count of tokens', () => {
  it('is of the input of a message, needs no window and has no answer', () => {
    const facts = factsOf('/v1/messages/count_tokens', {
      model: 'm',
      messages: [{ role: 'user', content: 'Hi' }],
    })
    assert.deepEqual([facts.read, facts.windowTokens, facts.maxOutputTokens], [['Hi'], 0, undefined])
    assert.equal(facts.constant, PER_REQUEST + PER_MESSAGE)
  })
})
