import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { responsesAsChat } from '../../../lib/core/translate/responses-as-chat/index.ts'

const WEATHER = {
  type: 'function',
  name: 'weather',
  parameters: { type: 'object', properties: {} },
  strict: false,
}

describe('a chat’s answer, as a response', () => {
  it('holds what was thought, said, refused and called, and the usage', () => {
    const { body, skipped } = responsesAsChat.answer(
      {
        id: 'chatcmpl-1',
        model: 'm',
        choices: [
          {
            index: 0,
            finish_reason: 'tool_calls',
            message: {
              content: 'Hello',
              reasoning_content: 'Hm.',
              tool_calls: [{ id: 'call_a', type: 'function', function: { name: 'weather', arguments: '' } }],
            },
          },
        ],
        usage: { completion_tokens_details: { reasoning_tokens: 2 } },
      },
      { inputTokens: 30, cachedInputTokens: 20, outputTokens: 9 },
      { request: { tools: [WEATHER] }, created: 5, estimatedInputTokens: 9 },
    )
    assert.equal(skipped, 0)
    const id = 'resp_chatcmpl-1'
    assert.deepEqual(body.output, [
      {
        id: `rs_${id}`,
        type: 'reasoning',
        summary: [],
        content: [{ type: 'reasoning_text', text: 'Hm.' }],
        status: 'completed',
      },
      {
        id: `msg_${id}`,
        type: 'message',
        status: 'completed',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'Hello', annotations: [], logprobs: [] }],
      },
      {
        id: `fc_${id}_0`,
        type: 'function_call',
        status: 'completed',
        call_id: 'call_a',
        name: 'weather',
        arguments: '{}',
      },
    ])
    assert.deepEqual(body.usage, {
      input_tokens: 30,
      input_tokens_details: { cached_tokens: 20 },
      output_tokens: 9,
      output_tokens_details: { reasoning_tokens: 2 },
      total_tokens: 39,
    })
    assert.deepEqual([body.id, body.status, body.created_at, body.tools], [id, 'completed', 5, [WEATHER]])
  })
})
