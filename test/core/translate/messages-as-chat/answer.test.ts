import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { messages } from '../../../../lib/core/operations/index.ts'
import { translationOf } from '../../../../lib/core/translate/index.ts'
import type { Body } from '../support/requests.ts'

const direction = translationOf(messages, { protocol: 'openai' })
const usage = { inputTokens: 10, cachedInputTokens: 4, cacheWriteTokens: 3, outputTokens: 5 }

/** The answer that a caller of messages gets from an OpenAI-style line's answer. */
function told(message: Body, choice: Body = {}, answer: Body = {}) {
  const context = { request: { model: 'chat' }, created: 1_700_000_000, estimatedInputTokens: 9 }
  const json = {
    id: 'chatcmpl-1',
    model: 'gpt',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: null, ...message },
        finish_reason: 'stop',
        ...choice,
      },
    ],
    ...answer,
  }
  const made = direction?.answer(json, usage, context)
  assert.ok(made)
  return made
}

const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }
const UNSIGNED = 'unsigned:openai-style-line'

describe('an OpenAI-style answer, to a caller of messages,', () => {
  it('is a message', () => {
    assert.deepEqual(told({ content: 'Hello', refusal: null }).body, {
      id: 'chatcmpl-1',
      type: 'message',
      role: 'assistant',
      model: 'gpt',
      content: [{ type: 'text', text: 'Hello' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: {
        input_tokens: 3,
        cache_creation_input_tokens: 3,
        cache_read_input_tokens: 4,
        output_tokens: 5,
      },
    })
  })

  it('reports the reasoning within the output', () => {
    const { body } = told(
      { content: 'a' },
      {},
      { usage: { completion_tokens_details: { reasoning_tokens: 2 } } },
    )
    assert.deepEqual((body.usage as Body).output_tokens_details, { thinking_tokens: 2 })
  })

  it('calls several tools, one without arguments', () => {
    const calls = [call, { ...call, id: 'call_2', function: { name: 'g', arguments: '' } }]
    const { body } = told({ content: 'So', tool_calls: calls }, { finish_reason: 'tool_calls' })
    assert.deepEqual(body.content, [
      { type: 'text', text: 'So' },
      { type: 'tool_use', id: 'call_1', name: 'f', input: { a: 1 } },
      { type: 'tool_use', id: 'call_2', name: 'g', input: {} },
    ])
    assert.equal(body.stop_reason, 'tool_use')
  })

  it('gives every call an id, where the line gave none', () => {
    const calls = [
      { ...call, id: '' },
      { ...call, id: undefined },
    ]
    const ids = (told({ tool_calls: calls }).body.content as { id: string }[]).map(({ id }) => id)
    assert.equal(new Set(ids).size, 2)
    for (const id of ids) assert.match(id, /^[a-zA-Z0-9_-]{1,40}$/)
  })

  it('thinks without a signature', () => {
    const thinking = [
      { type: 'thinking', thinking: 'hmm', signature: UNSIGNED },
      { type: 'text', text: 'a' },
    ]
    assert.deepEqual(told({ content: 'a', reasoning_content: 'hmm' }).body.content, thinking)
    const [first] = told({ content: 'a', reasoning: 'hmm' }).body.content as [object]
    // The signature names the member in which the line wants the reasoning back.
    assert.deepEqual(first, { ...thinking[0], signature: `${UNSIGNED}:reasoning` })
    const parts = [
      { type: 'thinking', thinking: [{ type: 'text', text: 'hmm' }] },
      { type: 'text', text: 'a' },
    ]
    assert.deepEqual(told({ content: parts }).body.content, thinking)
  })

  it('thinks with the signature of a model behind a router', () => {
    const detail = {
      type: 'reasoning.text',
      format: 'anthropic-claude-v1',
      index: 0,
      text: 'hmm',
      signature: 's',
    }
    const { body, skipped } = told({ content: 'a', reasoning: 'hmm', reasoning_details: [detail] })
    assert.deepEqual(body.content, [
      { type: 'thinking', thinking: 'hmm', signature: 's' },
      { type: 'text', text: 'a' },
    ])
    assert.equal(skipped, 0)
  })

  const REASONS: [finish: unknown, message: Body, stop: string][] = [
    ['stop', { content: 'a' }, 'end_turn'],
    ['stop', { tool_calls: [call] }, 'tool_use'],
    ['tool_calls', { tool_calls: [call] }, 'tool_use'],
    ['tool_calls', { content: 'a' }, 'end_turn'],
    ['length', { content: 'a' }, 'max_tokens'],
    ['content_filter', { content: 'a' }, 'refusal'],
    ['model_length', { content: 'a' }, 'max_tokens'],
    ['something_new', { content: 'a' }, 'max_tokens'],
    [null, { content: 'a' }, 'end_turn'],
  ]
  for (const [finish_reason, message, stop] of REASONS) {
    it(`that ends with ${finish_reason} after ${Object.keys(message)} ends with ${stop}`, () => {
      assert.equal(told(message, { finish_reason }).body.stop_reason, stop)
    })
  }

  it('that declines says so in its text and in its stop reason', () => {
    const { content, stop_reason, stop_details } = told({ refusal: 'No.' }).body
    assert.deepEqual(content, [{ type: 'text', text: 'No.' }])
    assert.equal(stop_reason, 'refusal')
    assert.deepEqual(stop_details, { type: 'refusal', category: null, explanation: 'No.' })
  })

  it('has details of a refusal only beside the stop reason "refusal"', () => {
    const ends: [finish: string, message: Body, stop: string][] = [
      ['length', { refusal: 'No' }, 'max_tokens'],
      ['tool_calls', { refusal: 'No', tool_calls: [call] }, 'tool_use'],
    ]
    for (const [finish_reason, message, stop] of ends) {
      const { body } = told(message, { finish_reason })
      assert.deepEqual([body.stop_reason, 'stop_details' in body], [stop, false])
    }
  })

  it('cites the pages of its annotations', () => {
    const url_citation = { url: 'https://example.com', title: 'E', start_index: 0, end_index: 1 }
    const { body } = told({ content: 'a', annotations: [{ type: 'url_citation', url_citation }] })
    const location = { url: 'https://example.com', title: 'E', encrypted_index: UNSIGNED, cited_text: '' }
    const citations = [{ type: 'web_search_result_location', ...location }]
    assert.deepEqual(body.content, [{ type: 'text', text: 'a', citations }])
  })

  it('leaves out and counts what a message has no word for', () => {
    const message = {
      content: 'a',
      audio: { id: 'x' },
      images: [{}, {}],
      tool_calls: [{ id: 'c', type: 'custom', custom: {} }],
    }
    const { body, skipped } = told(message)
    assert.deepEqual(body.content, [{ type: 'text', text: 'a' }])
    assert.equal(skipped, 4)
  })

  it('with arguments that are no object is broken, unless it was cut off', () => {
    for (const text of ['{"a":', '[1]', 'a']) {
      const cut = { tool_calls: [{ ...call, function: { name: 'f', arguments: text } }] }
      assert.throws(() => told(cut, { finish_reason: 'tool_calls' }), SyntaxError)
      const { body } = told(cut, { finish_reason: 'length' })
      assert.deepEqual(body.content, [{ type: 'tool_use', id: 'call_1', name: 'f', input: {} }])
      assert.equal(body.stop_reason, 'max_tokens')
    }
  })
})
