import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import {
  messageEvent,
  messageEvents,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from '../../support/scripted-upstream.ts'
import { openaiOf, read, user } from './clients.ts'

const TOOL = {
  type: 'function' as const,
  function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
}
const ask = { model: 'chat', messages: user('hi'), tools: [TOOL] }

const block = (index: number, start: object, ...deltas: object[]): string[] => [
  messageEvent('content_block_start', { index, content_block: start }),
  ...deltas.map((delta) => messageEvent('content_block_delta', { index, delta })),
  messageEvent('content_block_stop', { index }),
]
const text = (index: number, ...pieces: string[]) =>
  block(index, { type: 'text', text: '' }, ...pieces.map((piece) => ({ type: 'text_delta', text: piece })))
const toolUse = (index: number, id: string, ...pieces: string[]) =>
  block(
    index,
    { type: 'tool_use', id, name: 'weather', input: {} },
    ...pieces.map((piece) => ({ type: 'input_json_delta', partial_json: piece })),
  )
/** A message of these blocks. */
function message(blocks: readonly string[], stop: object = { stop_reason: 'end_turn' }): string[] {
  const [start, ...rest] = messageEvents([])
  const usage = {
    input_tokens: 7,
    cache_read_input_tokens: 20,
    cache_creation_input_tokens: 3,
    output_tokens: 9,
  }
  return [
    start as string,
    ...blocks,
    messageEvent('message_delta', { delta: { stop_sequence: null, ...stop }, usage }),
    rest.at(-1) as string,
  ]
}

describe('the OpenAI SDK on an Anthropic-style line, streamed', () => {
  let upstream: ScriptedUpstream
  let gateway: TestGateway
  let client: ReturnType<typeof openaiOf>
  let events: readonly string[]

  const cleanUp = cleaningUp()
  before(async () => {
    upstream = await startUpstream((res) => stream(res, events))
    cleanUp.after(() => upstream.close())
    gateway = await startGateway({ lines: [{ url: upstream.url, protocol: 'anthropic' }] })
    cleanUp.after(() => gateway.close())
    client = openaiOf(gateway.url)
  })
  beforeEach(() => {
    upstream.requests.length = 0
  })

  const final = (extra: object = {}) =>
    client.chat.completions.stream({ ...ask, ...extra }).finalChatCompletion()

  it('gets text', async () => {
    events = message(text(0, 'Hel', 'lo ', '\u2014 "wörld"\n', '😀'))
    const answer = await final()
    assert.equal(answer.id, 'msg_1')
    assert.equal(answer.object, 'chat.completion')
    assert.equal(answer.choices[0]?.message.content, 'Hello \u2014 "wörld"\n😀')
    assert.equal(answer.choices[0]?.finish_reason, 'stop')
    assert.equal(answer.usage, undefined)
    assert.equal(upstream.requests[0]?.path, '/v1/messages')
  })

  it('gets the usage chunk where it asked for it, with what the cache had to do with counted in', async () => {
    events = message(text(0, 'Hello'))
    const { usage } = await final({ stream_options: { include_usage: true } })
    assert.deepEqual(usage, {
      prompt_tokens: 30,
      completion_tokens: 9,
      total_tokens: 39,
      prompt_tokens_details: { cached_tokens: 20, cache_write_tokens: 3 },
    })
    const bare = await read(await client.chat.completions.create({ ...ask, stream: true }))
    assert.ok(bare.every((chunk) => chunk.choices.length === 1 && !('usage' in chunk)))
  })

  it('gets several tool calls, in pieces, whole in the start, and without arguments', async () => {
    const whole = block(3, { type: 'tool_use', id: 'toolu_d', name: 'weather', input: { city: 'Bonn' } })
    events = message(
      [
        ...text(0, 'Let me look.'),
        ...toolUse(1, 'toolu_a', '', '{"ci', 'ty":"Rome"}'),
        messageEvent('ping'),
        ...toolUse(2, 'toolu_b', ''),
        ...whole,
        ...toolUse(4, 'toolu_c', '{"city":"Bern"}'),
      ],
      { stop_reason: 'tool_use' },
    )
    const [choice] = (await final()).choices
    assert.equal(choice?.finish_reason, 'tool_calls')
    assert.equal(choice?.message.content, 'Let me look.')
    assert.deepEqual(
      choice?.message.tool_calls?.map((call) => [
        call.id,
        call.type === 'function' && call.function.arguments,
      ]),
      [
        ['toolu_a', '{"city":"Rome"}'],
        ['toolu_b', '{}'],
        ['toolu_d', '{"city":"Bonn"}'],
        ['toolu_c', '{"city":"Bern"}'],
      ],
    )
  })

  it('gets what was thought, with what the way back needs', async () => {
    const thinking = ['Let', ' me ', 'see\n😀'].map((piece) => ({ type: 'thinking_delta', thinking: piece }))
    events = message([
      ...block(0, { type: 'thinking', thinking: '', signature: '' }, ...thinking, {
        type: 'signature_delta',
        signature: 'c2ln',
      }),
      ...block(1, { type: 'redacted_thinking', data: 'c2VjcmV0' }),
      ...text(2, 'Seen.'),
    ])
    const chunks = await read(await client.chat.completions.create({ ...ask, stream: true }))
    const deltas = chunks.map(({ choices }) => choices[0]?.delta as Record<string, unknown>)
    assert.equal(deltas.map((delta) => delta.reasoning_content ?? '').join(''), 'Let me see\n😀')
    assert.equal(deltas.map((delta) => delta.content ?? '').join(''), 'Seen.')
    assert.deepEqual(
      deltas.flatMap((delta) => delta.reasoning_details ?? []),
      [
        { type: 'reasoning.text', format: 'anthropic-claude-v1', index: 0, signature: 'c2ln', length: 13 },
        { type: 'reasoning.encrypted', format: 'anthropic-claude-v1', index: 1, length: 0, data: 'c2VjcmV0' },
      ],
    )
  })

  it('gets a refusal in words', async () => {
    events = message([], {
      stop_reason: 'refusal',
      stop_details: { type: 'refusal', explanation: 'Not this.' },
    })
    const [choice] = (await final()).choices
    assert.equal(choice?.message.refusal, 'Not this.')
    assert.equal(choice?.finish_reason, 'stop')
  })

  it('gets pages that were cited, with the place of what they are cited for', async () => {
    const citation = {
      type: 'web_search_result_location',
      url: 'https://a.test/',
      title: 'A',
      cited_text: 'x',
      encrypted_index: 'y',
    }
    events = message([
      ...text(0, 'Known: '),
      ...block(
        1,
        { type: 'text', text: '', citations: [] },
        { type: 'citations_delta', citation },
        { type: 'text_delta', text: 'rain' },
      ),
    ])
    const chunks = await read(await client.chat.completions.create({ ...ask, stream: true }))
    const told = chunks.flatMap(
      ({ choices }) => (choices[0]?.delta as { annotations?: object[] } | undefined)?.annotations ?? [],
    )
    assert.deepEqual(told, [
      {
        type: 'url_citation',
        url_citation: { start_index: 7, end_index: 11, url: 'https://a.test/', title: 'A' },
      },
    ])
  })

  for (const [stop, finish] of [
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['stop_sequence', 'stop'],
    ['pause_turn', 'length'],
  ] as const) {
    it(`gets the finish reason ${finish} for ${stop}`, async () => {
      events = message(text(0, 'Hello'), { stop_reason: stop })
      assert.equal((await final()).choices[0]?.finish_reason, finish)
    })
  }

  it('gets what it knows of a stream with events, blocks and deltas that it does not; they are counted', async () => {
    events = message([
      messageEvent('content_block_start', {
        index: 0,
        content_block: { type: 'server_tool_use', id: 'x', name: 'web_search', input: {} },
      }),
      messageEvent('content_block_delta', {
        index: 0,
        delta: { type: 'input_json_delta', partial_json: '{"q":1}' },
      }),
      messageEvent('content_block_stop', { index: 0 }),
      messageEvent('weather_report', { sun: true }),
      ...block(
        1,
        { type: 'text', text: '' },
        { type: 'text_delta', text: 'Hel' },
        { type: 'mood_delta', mood: 'good' },
        { type: 'text_delta', text: 'lo' },
      ),
    ])
    const running = client.chat.completions.stream(ask)
    const answer = await running.finalChatCompletion()
    assert.equal(answer.choices[0]?.message.content, 'Hello')
    assert.deepEqual(answer.choices[0]?.message.tool_calls ?? [], [])
  })

  it('gets its own last event once, also where the line forgets its own', async () => {
    for (const cut of [0, 1]) {
      events = message(text(0, 'Hello')).slice(0, cut === 0 ? undefined : -cut)
      const response = await gateway.post('/v1/chat/completions', { ...ask, stream: true })
      assert.match(await response.text(), /"finish_reason":"stop"[^\n]*\n\ndata: \[DONE\]\n\n$/)
    }
  })
})
