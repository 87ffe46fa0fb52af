import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sealedToolId, toolId } from '../../../lib/core/translate/parts/tool-ids.ts'
import { responsesAsMessages } from '../../../lib/core/translate/responses-as-chat/index.ts'
import { chatAnswered } from './of-responses.ts'

const REPEATED = {
  instructions: 'Be brief.',
  max_output_tokens: 7,
  max_tool_calls: 3,
  metadata: { a: 'b' },
  parallel_tool_calls: false,
  reasoning: { effort: 'low' },
  temperature: 0.5,
  text: { format: { type: 'json_object' } },
  tool_choice: 'none',
  tools: [{ type: 'function', name: 'f' }],
  top_p: 0.5,
  truncation: 'auto',
  user: 'u',
}

describe('a response that is made of a chat’s answer', () => {
  const SHELL = {
    id: 'resp_c',
    object: 'response',
    created_at: 5,
    status: 'completed',
    background: false,
    error: null,
    incomplete_details: null,
    model: 'm',
    output: [],
    previous_response_id: null,
    store: false,
    top_logprobs: 0,
    usage: {
      input_tokens: 0,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 0,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 0,
    },
  }
  const DEFAULTS = {
    instructions: null,
    max_output_tokens: null,
    max_tool_calls: null,
    metadata: {},
    parallel_tool_calls: true,
    reasoning: { effort: null, summary: null },
    temperature: 1,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
    truncation: 'disabled',
    user: null,
  }

  it('repeats what was asked for, and has the defaults of the rest', () => {
    const answer = { id: 'c', model: 'm' }
    assert.deepEqual(chatAnswered(answer).body, { ...SHELL, ...DEFAULTS })
    assert.deepEqual(chatAnswered(answer, { ...REPEATED, input: 'hi', other: 1 }).body, {
      ...SHELL,
      ...REPEATED,
    })
    const nulls = Object.fromEntries(Object.keys(REPEATED).map((member) => [member, null]))
    assert.deepEqual(chatAnswered(answer, nulls).body, { ...SHELL, ...DEFAULTS })
  })

  it('has an id and a model where the line gave none', () => {
    for (const odd of [undefined, '', 7]) {
      const { body } = chatAnswered({ id: odd, model: odd === '' ? {} : odd })
      assert.deepEqual([body.id, body.model], ['resp_5', ''])
    }
  })

  it('has the usage, each part of it', () => {
    const usage = { inputTokens: 30, outputTokens: 9, cachedInputTokens: 20, cacheWriteTokens: 4 }
    const answer = { usage: { completion_tokens_details: { reasoning_tokens: 2 } } }
    assert.deepEqual(chatAnswered(answer, {}, usage).body.usage, {
      input_tokens: 30,
      input_tokens_details: { cached_tokens: 20, cache_write_tokens: 4 },
      output_tokens: 9,
      output_tokens_details: { reasoning_tokens: 2 },
      total_tokens: 39,
    })
  })

  const message = (members: object) => ({ id: 'c', choices: [{ message: members, finish_reason: 'stop' }] })
  const item = (content: object[]) => ({
    id: 'msg_resp_c',
    type: 'message',
    status: 'completed',
    role: 'assistant',
    content,
  })

  it('says, cites and declines', () => {
    const cited = { url: 'https://a.test', title: 'A', start_index: 0, end_index: 1 }
    const annotations = [
      { type: 'url_citation', url_citation: cited },
      { type: 'x' },
      { url_citation: 7 },
      'x',
    ]
    const text = {
      type: 'output_text',
      text: 'a',
      annotations: [{ type: 'url_citation', ...cited }],
      logprobs: [],
    }
    const refusal = { type: 'refusal', refusal: 'No.' }
    assert.deepEqual(chatAnswered(message({ content: 'a', refusal: 'No.', annotations })).body.output, [
      item([text, refusal]),
    ])
    assert.deepEqual(chatAnswered(message({ content: '', refusal: 'No.' })).body.output, [item([refusal])])
    assert.deepEqual(chatAnswered(message({ content: null, refusal: '' })).body.output, [])
  })

  it('calls with an id, arguments as a text, and what the line wants back', () => {
    const extra = { google: { thought_signature: 's' } }
    const tool_calls = [
      { function: { name: 'f', arguments: { a: 1 } } },
      { id: 'call_1', function: { name: 'f', arguments: null }, extra_content: extra },
      { id: 'x', function: { name: 7 } },
      { id: 'y' },
      { id: 'call_2', function: { name: 'f', arguments: '{}' } },
    ]
    const call = (i: number, call_id: string, args: string) => ({
      id: `fc_resp_c_${i}`,
      type: 'function_call',
      status: 'completed',
      call_id,
      name: 'f',
      arguments: args,
    })
    const { body, skipped } = chatAnswered(message({ tool_calls }))
    assert.equal(skipped, 2, 'those without a name')
    assert.deepEqual(body.output, [
      call(0, toolId('resp_c:0'), '{"a":1}'),
      call(1, sealedToolId('call_1', extra), '{}'),
      call(4, 'call_2', '{}'),
    ])
  })

  it('counts what it has no item for', () => {
    const choices = [{ message: { content: 'a', images: [{}], audio: {} } }, {}, {}]
    assert.equal(chatAnswered({ choices }).skipped, 4)
    const blocks = [{ type: 'mystery' }, { type: 'text', text: 'a' }]
    const made = responsesAsMessages.answer(
      { content: blocks },
      {},
      { request: {}, created: 5, estimatedInputTokens: 0 },
    )
    assert.equal(made.skipped, 1)
  })
})
