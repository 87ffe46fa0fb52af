import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { messages, OPERATIONS, responses } from '../../../lib/core/operations/index.ts'
import { storedResponses } from '../../../lib/core/operations/responses/responses.ts'
import { estimateTokens } from '../../../lib/core/operations/tokens/token-estimate.ts'
import { responseIn } from '../../support/responses-upstream.ts'

const TEXT = 'A sentence of some words that count.'
const COUNT = estimateTokens(TEXT)

describe('a message', () => {
  const read = (...content: unknown[]) => messages.readAnswer({ content })

  it('is output where a block says something', () => {
    for (const block of [
      { type: 'text', text: 'a' },
      { type: 'thinking', thinking: 'a' },
      { type: 'redacted_thinking' },
      { type: 'tool_use', name: 'f' },
      {},
    ])
      assert.equal(read(block).substance, 'output', JSON.stringify(block))
  })

  it('is empty where none does', () => {
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

  it('is none without content', () => {
    for (const json of [null, 'text', {}, { content: 'text' }])
      assert.throws(() => messages.readAnswer(json), /^SyntaxError: the answer has no "content"$/)
  })
})

describe('a response', () => {
  const read = (output: unknown[], members: object = {}) => responses.readAnswer({ output, ...members })
  const text = { type: 'message', content: [{ type: 'output_text', text: TEXT }] }
  const reasoning = { type: 'reasoning', name: TEXT, summary: [{ text: TEXT }], content: [{ text: TEXT }] }

  it('is counted by its texts, by its reasoning, and by what its calls say', () => {
    assert.equal(read([text]).estimateOutput(), COUNT)
    assert.equal(read([reasoning]).estimateOutput(), estimateTokens(TEXT + TEXT))
    const call = { type: 'function_call', name: 'f', arguments: '{}', id: TEXT, status: TEXT }
    assert.equal(read([call]).estimateOutput(), estimateTokens('f{}'))
    const custom = { type: 'any', input: 'a', code: 'b', action: { c: 1 }, queries: ['d'], operation: 'e' }
    assert.equal(read([custom]).estimateOutput(), estimateTokens('ab{"c":1}["d"]e'))
    assert.equal(read([text, null, 'x', text]).estimateOutput(), 2 * COUNT)
  })

  it('is output where an item says something, calls a tool, or can be handed back', () => {
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

  it('declines in a part of a message, and was stopped where nothing was said', () => {
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

  it('failed by its status, with the error that it names', () => {
    assert.equal(read([text], { error: { code: 'x' } }).error, undefined)
    assert.deepEqual(read([], { status: 'failed', error: { code: 'x' } }).error, { code: 'x' })
    assert.deepEqual(read([], { status: 'cancelled', error: null }).error, {
      message: 'the response has the status "cancelled"',
    })
  })

  it('is kept under its id, unless the line says that it keeps none', () => {
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
  it('is any object, at no cost', () => {
    const { substance, usage, estimateOutput } = storedResponses.readAnswer({ id: 'resp_1' })
    assert.deepEqual([substance, usage, estimateOutput()], ['output', {}, 0])
    for (const json of [null, 'text', 7, undefined])
      assert.throws(() => storedResponses.readAnswer(json), SyntaxError)
    assert.equal(storedResponses.priceUnit, 'none')
    assert.equal(OPERATIONS.includes(storedResponses), false)
  })
})

describe('a count of tokens', () => {
  it('is an answer of its own, at no cost', () => {
    const operation = OPERATIONS.find(({ path }) => path === '/v1/messages/count_tokens')
    assert.ok(operation)
    const { substance, usage, estimateOutput } = operation.readAnswer({ input_tokens: 0 })
    assert.deepEqual([substance, usage, estimateOutput()], ['output', {}, 0])
    for (const json of [null, {}, { input_tokens: -1 }, { input_tokens: '1' }])
      assert.throws(() => operation.readAnswer(json), SyntaxError)
  })
})
