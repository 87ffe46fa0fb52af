import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import { UNSIGNED, unsignedOf } from '../../../lib/core/translate/reasoning.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import { chatChunk, type ScriptedUpstream, startUpstream, stream } from '../../support/scripted-upstream.ts'
import { anthropicOf, read, user } from './clients.ts'

const ask = {
  model: 'chat',
  max_tokens: 100,
  messages: user('hi'),
  tools: [
    { name: 'weather', input_schema: { type: 'object' as const, properties: { city: { type: 'string' } } } },
  ],
}
const USAGE = {
  prompt_tokens: 30,
  completion_tokens: 9,
  total_tokens: 39,
  prompt_tokens_details: { cached_tokens: 20 },
  completion_tokens_details: { reasoning_tokens: 4 },
}
const call = (index: number | undefined, id: string | undefined, name: string | undefined, args: unknown) =>
  chatChunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: args } }] })

/** A stream of these chunks. */
const completion = (chunks: readonly string[], finish = 'stop'): string[] => [
  chatChunk({ role: 'assistant', content: '' }),
  ...chunks,
  chatChunk({}, finish),
  chatChunk({}, null, { choices: [], usage: USAGE }),
  'data: [DONE]\n\n',
]

describe('the Anthropic SDK on an OpenAI-style line, streamed', () => {
  let upstream: ScriptedUpstream
  let gateway: TestGateway
  let client: ReturnType<typeof anthropicOf>
  let events: readonly string[]

  const cleanUp = cleaningUp()
  before(async () => {
    upstream = await startUpstream((res) => stream(res, events))
    cleanUp.after(() => upstream.close())
    gateway = await startGateway({ lines: [{ url: upstream.url, protocol: 'openai' }] })
    cleanUp.after(() => gateway.close())
    client = anthropicOf(gateway.url)
  })
  beforeEach(() => {
    upstream.requests.length = 0
  })

  const final = () => client.messages.stream(ask).finalMessage()

  it('gets text, and the usage, with what the cache had to do with counted apart', async () => {
    events = completion(['Hel', 'lo ', '\u2014 "wörld"\n', '😀'].map((content) => chatChunk({ content })))
    const message = await final()
    assert.equal(message.id, 'chatcmpl-1')
    assert.deepEqual(message.content, [{ type: 'text', text: 'Hello \u2014 "wörld"\n😀' }])
    assert.equal(message.stop_reason, 'end_turn')
    assert.deepEqual(message.usage, {
      input_tokens: 10,
      cache_creation_input_tokens: null,
      cache_read_input_tokens: 20,
      output_tokens: 9,
      output_tokens_details: { thinking_tokens: 4 },
    })
    assert.equal(upstream.requests[0]?.path, '/v1/chat/completions')
    assert.deepEqual(upstream.requests[0]?.json.stream_options, { include_usage: true })
  })

  for (const member of ['reasoning_content', 'reasoning'] as const) {
    it(`gets what was thought (${member}) as a block of its own`, async () => {
      events = completion([
        chatChunk({ [member]: 'Let' }),
        chatChunk({ [member]: ' me' }),
        chatChunk({ content: 'Seen.' }),
      ])
      assert.deepEqual((await final()).content, [
        { type: 'thinking', thinking: 'Let me', signature: unsignedOf(member) },
        { type: 'text', text: 'Seen.' },
      ])
    })
  }

  const toolCalls: Record<string, string[]> = {
    'in pieces, one after the other': [
      call(0, 'a', 'weather', ''),
      call(0, undefined, undefined, '{"ci'),
      call(0, undefined, undefined, 'ty":"Ro}me"}'),
      call(1, 'b', 'weather', '{"city":'),
      call(1, undefined, undefined, '"Bern"}'),
    ],
    'in pieces, in turns': [
      call(0, 'a', 'weather', ''),
      call(1, 'b', 'weather', ''),
      call(1, undefined, undefined, '{"city":'),
      call(0, undefined, undefined, '{"city":"Ro'),
      call(1, undefined, undefined, '"Bern"}'),
      call(0, undefined, undefined, '}me"}'),
    ],
    'whole in one chunk': [
      chatChunk({
        tool_calls: [
          {
            index: 0,
            id: 'a',
            type: 'function',
            function: { name: 'weather', arguments: '{"city":"Ro}me"}' },
          },
          {
            index: 1,
            id: 'b',
            type: 'function',
            function: { name: 'weather', arguments: '{"city":"Bern"}' },
          },
        ],
      }),
    ],
    'all with the same index': [
      call(0, 'a', 'weather', '{"city":"Ro}me"}'),
      call(0, 'b', 'weather', '{"city":"Bern"}'),
    ],
    'without an index': [
      call(undefined, 'a', 'weather', '{"city":'),
      call(undefined, undefined, undefined, '"Ro}me"}'),
      call(undefined, 'b', 'weather', '{"city":"Bern"}'),
    ],
    'with id and name in every piece': [
      call(0, 'a', 'weather', '{"city":'),
      call(0, 'a', 'weather', '"Ro}me"}'),
      call(1, 'b', 'weather', '{"city":"Bern"}'),
    ],
    'with arguments that are objects': [
      call(0, 'a', 'weather', { city: 'Ro}me' }),
      call(1, 'b', 'weather', { city: 'Bern' }),
    ],
  }
  for (const [how, chunks] of Object.entries(toolCalls)) {
    it(`gets parallel tool calls ${how}`, async () => {
      events = completion([chatChunk({ content: 'Looking.' }), ...chunks], 'tool_calls')
      const message = await final()
      assert.equal(message.stop_reason, 'tool_use')
      assert.deepEqual(message.content, [
        { type: 'text', text: 'Looking.' },
        { type: 'tool_use', id: 'a', name: 'weather', input: { city: 'Ro}me' } },
        { type: 'tool_use', id: 'b', name: 'weather', input: { city: 'Bern' } },
      ])
    })
  }

  it('gets tool calls without arguments, and text that comes behind them', async () => {
    events = completion([
      call(0, 'a', 'weather', ''),
      call(1, 'b', 'weather', '{}'),
      chatChunk({ content: 'Done.' }),
    ])
    const message = await final()
    // Some upstreams end with "stop" all the same.
    assert.equal(message.stop_reason, 'tool_use')
    assert.deepEqual(message.content, [
      { type: 'tool_use', id: 'a', name: 'weather', input: {} },
      { type: 'tool_use', id: 'b', name: 'weather', input: {} },
      { type: 'text', text: 'Done.' },
    ])
  })

  it('gets ids for tool calls that have none, different ones', async () => {
    events = completion(
      [call(0, undefined, 'weather', '{}'), call(1, undefined, 'weather', '{}')],
      'tool_calls',
    )
    const ids = (await final()).content.map((block) => block.type === 'tool_use' && block.id)
    assert.equal(new Set(ids).size, 2)
    for (const id of ids) assert.match(String(id), /^[a-zA-Z0-9_-]+$/)
  })

  it('gets a refusal as text and reason', async () => {
    events = completion([chatChunk({ refusal: 'Not' }), chatChunk({ refusal: ' this.' })])
    const message = await final()
    assert.deepEqual(message.content, [{ type: 'text', text: 'Not this.' }])
    assert.equal(message.stop_reason, 'refusal')
  })

  it('gets pages that were cited', async () => {
    const cited = {
      type: 'url_citation',
      url_citation: { url: 'https://a.test/', title: 'A', start_index: 0, end_index: 4 },
    }
    events = completion([chatChunk({ content: 'rain' }), chatChunk({ annotations: [cited] })])
    const [block] = (await final()).content
    assert.deepEqual(block?.type === 'text' && block.citations, [
      {
        type: 'web_search_result_location',
        url: 'https://a.test/',
        title: 'A',
        encrypted_index: UNSIGNED,
        cited_text: '',
      },
    ])
  })

  for (const [finish, stop] of [
    ['length', 'max_tokens'],
    ['content_filter', 'refusal'],
    ['whatever', 'max_tokens'],
  ] as const) {
    it(`gets the stop reason ${stop} for ${finish}`, async () => {
      events = completion([chatChunk({ content: 'Hello' })], finish)
      assert.equal((await final()).stop_reason, stop)
    })
  }

  it('gets an estimate where the line reports no usage', async () => {
    events = completion([chatChunk({ content: 'Hello' })]).filter((event) => !event.includes('"usage"'))
    const { usage } = await final()
    assert.ok(usage.input_tokens > 0)
    assert.equal(usage.output_tokens, 1)
  })

  it('gets comments as pings, and what it knows of a stream with members that it does not', async () => {
    const other = chatChunk({ content: 'B' }).replace('"index":0', '"index":1')
    events = completion([
      chatChunk({ content: 'Hel' }),
      ': still here\n\n',
      other,
      chatChunk({ content: 'lo', mood: 'good' }, null, { x_server: { load: 1 } }),
    ])
    const got = await read(await client.messages.create({ ...ask, stream: true }))
    assert.equal(
      got
        .map((event) =>
          event.type === 'content_block_delta' && event.delta.type === 'text_delta' ? event.delta.text : '',
        )
        .join(''),
      'Hello',
    )
    const response = await gateway.post('/v1/messages', { ...ask, stream: true })
    assert.match(await response.text(), /event: ping\ndata: \{"type":"ping"\}\n\n/)
  })

  it('gets its own last event once, also where the line forgets its own, or reports its usage with the end', async () => {
    const whole = completion([chatChunk({ content: 'Hello' })])
    const withUsage = [...whole.slice(0, 2), chatChunk({}, 'stop', { usage: USAGE })]
    for (const sent of [whole, whole.slice(0, -1), withUsage]) {
      events = sent
      const response = await gateway.post('/v1/messages', { ...ask, stream: true })
      const text = await response.text()
      assert.match(
        text,
        /"output_tokens":9,[^\n]*\n\nevent: message_stop\ndata: \{"type":"message_stop"\}\n\n$/,
      )
      assert.equal(text.split('event: message_stop').length, 2)
      assert.equal(text.split('event: message_delta').length, 2)
    }
  })
})
