import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { responsesAsChat, responsesAsMessages } from '../../../lib/core/translate/responses-as-chat/index.ts'
import { chatChunk, messageEvent, messageEvents } from '../../support/scripted-upstream.ts'
import { clientOn } from './as-responses.ts'

const SIGNED = { type: 'signature_delta', signature: 'c2ln' }
const block = (index: number, start: object, ...deltas: object[]): string[] => [
  messageEvent('content_block_start', { index, content_block: start }),
  ...deltas.map((delta) => messageEvent('content_block_delta', { index, delta })),
  messageEvent('content_block_stop', { index }),
]
const call = (index: number, id: string | undefined, args: string) =>
  chatChunk({
    tool_calls: [
      {
        index,
        ...(id && { id }),
        type: 'function',
        function: { ...(id && { name: 'weather' }), arguments: args },
      },
    ],
  })

/** The same answer, told by a line of each protocol: thought, said, two tools called. */
const LINES = [
  {
    line: 'openai' as const,
    passage: responsesAsChat,
    events: [
      chatChunk({ role: 'assistant', content: '' }),
      chatChunk({ reasoning_content: 'Let' }),
      chatChunk({ reasoning_content: ' me' }),
      chatChunk({ content: 'Look' }),
      chatChunk({ content: 'ing "wörld" 😀' }),
      call(0, 'call_a', ''),
      call(1, 'call_b', ''),
      call(0, undefined, '{"city":'),
      call(0, undefined, '"Rome"}'),
      chatChunk({}, 'tool_calls'),
      chatChunk({}, null, {
        choices: [],
        usage: {
          prompt_tokens: 30,
          completion_tokens: 9,
          total_tokens: 39,
          prompt_tokens_details: { cached_tokens: 20 },
          completion_tokens_details: { reasoning_tokens: 4 },
        },
      }),
      'data: [DONE]\n\n',
    ],
  },
  {
    line: 'anthropic' as const,
    passage: responsesAsMessages,
    events: [
      ...messageEvents([]).slice(0, 1),
      ...block(
        0,
        { type: 'thinking', thinking: '', signature: '' },
        { type: 'thinking_delta', thinking: 'Let me' },
        SIGNED,
      ),
      ...block(
        1,
        { type: 'text', text: '' },
        { type: 'text_delta', text: 'Look' },
        { type: 'text_delta', text: 'ing "wörld" 😀' },
      ),
      messageEvent('ping'),
      ...block(
        2,
        { type: 'tool_use', id: 'call_a', name: 'weather', input: {} },
        { type: 'input_json_delta', partial_json: '{"city":"Rome"}' },
      ),
      ...block(3, { type: 'tool_use', id: 'call_b', name: 'weather', input: {} }),
      messageEvent('message_delta', {
        delta: { stop_reason: 'tool_use' },
        usage: {
          input_tokens: 10,
          cache_read_input_tokens: 20,
          output_tokens: 9,
          output_tokens_details: { thinking_tokens: 4 },
        },
      }),
      messageEvent('message_stop'),
    ],
  },
]

for (const { line, passage, events } of LINES) {
  describe(`responses.stream() on a line that speaks ${line === 'openai' ? 'chat completions' : 'messages'}`, () => {
    it('gives the whole response', async () => {
      const request = { instructions: 'Be brief.', metadata: { a: 'b' } }
      const response = await clientOn(line, passage, events, request)
        .responses.stream({ model: 'chat', input: 'hi' })
        .finalResponse()
      assert.equal(response.object, 'response')
      assert.equal(response.status, 'completed')
      assert.equal(response.instructions, 'Be brief.')
      assert.deepEqual(response.metadata, { a: 'b' })
      assert.equal((response as { store?: unknown }).store, false)
      assert.equal(response.output_text, 'Looking "wörld" 😀')
      assert.deepEqual(
        response.output.map(({ type }) => type),
        ['reasoning', 'message', 'function_call', 'function_call'],
      )
      const [reasoning, , first, second] = response.output
      assert.deepEqual(reasoning?.type === 'reasoning' && reasoning.content, [
        { type: 'reasoning_text', text: 'Let me' },
      ])
      assert.deepEqual(
        [first, second].map(
          (item) => item?.type === 'function_call' && [item.call_id, item.name, item.arguments],
        ),
        [
          ['call_a', 'weather', '{"city":"Rome"}'],
          ['call_b', 'weather', '{}'],
        ],
      )
      assert.equal(response.usage?.input_tokens, 30)
      assert.equal(response.usage?.input_tokens_details.cached_tokens, 20)
      assert.equal(response.usage?.output_tokens, 9)
      assert.equal(response.usage?.output_tokens_details.reasoning_tokens, 4)
      assert.equal(response.usage?.total_tokens, 39)
    })

    it('numbers its events, and tells text and arguments piece by piece', async () => {
      const told: string[] = []
      const running = await clientOn(line, passage, events).responses.create({
        model: 'chat',
        input: 'hi',
        stream: true,
      })
      let number = 0
      for await (const event of running) {
        assert.equal(event.sequence_number, number++)
        if (event.type === 'response.output_text.delta' || event.type === 'response.reasoning_text.delta')
          told.push(event.delta)
      }
      assert.equal(told.join(''), 'Let meLooking "wörld" 😀')
      assert.ok(told.length > 2)
    })
  })
}

const FINISHES = [
  ['length', 'incomplete', 'max_output_tokens'],
  ['content_filter', 'incomplete', 'content_filter'],
  ['stop', 'completed', undefined],
] as const
describe('the end of a response on a line that speaks chat completions', () => {
  for (const [finish, status, reason] of FINISHES) {
    it(`is ${status} for ${finish}`, async () => {
      const events = [chatChunk({ content: 'Hello' }), chatChunk({}, finish)]
      const response = await clientOn('openai', responsesAsChat, events)
        .responses.stream({ model: 'chat', input: 'hi' })
        .finalResponse()
      assert.equal(response.status, status)
      assert.equal(response.incomplete_details?.reason, reason)
      assert.equal(response.output_text, 'Hello')
    })

    it(`says so of its last item and of no other (${finish}, streamed and plain)`, async () => {
      const name = 'weather'
      const events = [
        chatChunk({ content: 'Hello' }),
        call(0, 'call_a', '{}'),
        call(1, 'call_b', '{"ci'),
        chatChunk({}, finish),
      ]
      const response = await clientOn('openai', responsesAsChat, events)
        .responses.stream({ model: 'chat', input: 'hi' })
        .finalResponse()
      const tool_calls = ['{}', '{"ci'].map((args) => ({ function: { name, arguments: args } }))
      const { body } = responsesAsChat.answer(
        { choices: [{ message: { content: 'Hello', tool_calls }, finish_reason: finish }] },
        {},
        { request: {}, created: 5, estimatedInputTokens: 9 },
      )
      for (const output of [response.output, body.output as { status?: unknown }[]])
        assert.deepEqual(
          output.map((item) => 'status' in item && item.status),
          ['completed', 'completed', status],
        )
    })
  }

  it('holds a refusal, and the pages that were cited', async () => {
    const cited = { url: 'https://a.test/', title: 'A', start_index: 0, end_index: 4 }
    const events = [
      chatChunk({ content: 'rain' }),
      chatChunk({ annotations: [{ type: 'url_citation', url_citation: cited }] }),
      chatChunk({ refusal: 'Not ' }),
      chatChunk({ refusal: 'this.' }),
      chatChunk({}, 'stop'),
    ]
    const { output } = await clientOn('openai', responsesAsChat, events)
      .responses.stream({ model: 'chat', input: 'hi' })
      .finalResponse()
    assert.deepEqual(output[0]?.type === 'message' && output[0].content, [
      {
        type: 'output_text',
        text: 'rain',
        annotations: [{ type: 'url_citation', ...cited }],
        logprobs: [],
        parsed: null,
      },
      { type: 'refusal', refusal: 'Not this.', parsed: null },
    ])
  })
})
