import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import { type AssembledGateway, assembledGateway } from '../../support/assembled-gateway.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import {
  chatAnswer,
  chatChunk,
  chatEvents,
  messageAnswer,
  messageEvents,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from '../../support/scripted-upstream.ts'
import { anthropicOf, openaiOf, user } from './clients.ts'

const CALLS = [
  {
    index: 0,
    id: 'call_1',
    type: 'function' as const,
    function: { name: 'weather', arguments: '{"city":"Rome"}' },
  },
]
const TOOLS = [{ type: 'function' as const, function: { name: 'weather' } }]

let upstream: ScriptedUpstream
let gateway: AssembledGateway

const cleanUp = cleaningUp()
before(async () => {
  upstream = await startUpstream((res, { json, path }) => {
    if (path.endsWith('/messages'))
      return json.stream ? stream(res, messageEvents(['Hel', 'lo'])) : messageAnswer(res)
    if (!json.tools) return json.stream ? stream(res, chatEvents(['Hel', 'lo'])) : chatAnswer(res)
    if (json.stream)
      return stream(res, [
        chatChunk({ role: 'assistant', tool_calls: CALLS }),
        chatChunk({}, 'tool_calls', { usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } }),
        'data: [DONE]\n\n',
      ])
    const message = { role: 'assistant', content: null, tool_calls: CALLS }
    return chatAnswer(res, '', { choices: [{ index: 0, message, finish_reason: 'tool_calls' }] })
  })
  cleanUp.after(() => upstream.close())
  const cache = { ttlSeconds: 600 }
  gateway = await assembledGateway(cleanUp, {
    models: [
      { id: 'chat', kind: 'chat', cache },
      { id: 'claude', kind: 'chat', cache },
    ],
    lines: [
      {
        ...{ id: 'o', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1` },
        ...{ endpoints: ['chat/completions'], models: { chat: 'u' } },
      },
      {
        ...{ id: 'a', provider: 'p', protocol: 'anthropic', baseUrl: `${upstream.url}/v1` },
        models: { claude: 'v' },
      },
    ],
  })
})
beforeEach(() => {
  upstream.requests.length = 0
})

/** Asks twice, and returns what the SDK made of each answer. The second one must come from the cache. */
async function twice<T>(
  ask: () => {
    withResponse(): Promise<{ data: T; response: Response; request_id: string | null | undefined }>
  },
  read: (data: T) => Promise<unknown> = async (data) => data,
): Promise<unknown> {
  const first = await ask().withResponse()
  const one = await read(first.data)
  const second = await ask().withResponse()
  const other = await read(second.data)
  assert.deepEqual(
    [first, second].map(({ response }) => response.headers.get('x-gateway-cache')),
    ['miss', 'hit'],
  )
  assert.notEqual(second.request_id, first.request_id)
  assert.match(second.request_id ?? '', /^req_/)
  assert.deepEqual(plain(other), plain(one))
  assert.equal(upstream.requests.length, 1)
  return one
}

/** The request id of an answer is an own property that differs. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (name, member) => (name === '_request_id' ? undefined : member)))
}

async function eventsOf(events: AsyncIterable<unknown>): Promise<unknown[]> {
  const all: unknown[] = []
  for await (const event of events) all.push(event)
  return all
}

describe('the official SDKs, answered from a cache', () => {
  const chat = { model: 'chat', messages: user('hi') }
  it('OpenAI: completions, plain and streamed, with the usage', async () => {
    const client = openaiOf(gateway.url)
    const answer = await twice(() => client.chat.completions.create(chat))
    assert.match(JSON.stringify(answer), /"Hello".*"total_tokens":10/)
    upstream.requests.length = 0
    const events = await twice(
      () =>
        client.chat.completions.create({ ...chat, stream: true, stream_options: { include_usage: true } }),
      eventsOf,
    )
    assert.match(JSON.stringify(events), /"Hel".*"lo".*"total_tokens":9/)
  })

  it('OpenAI: calls of tools, plain and streamed', async () => {
    const client = openaiOf(gateway.url)
    const asked = { ...chat, tools: TOOLS }
    assert.match(JSON.stringify(await twice(() => client.chat.completions.create(asked))), /call_1/)
    upstream.requests.length = 0
    const events = await twice(() => client.chat.completions.create({ ...asked, stream: true }), eventsOf)
    assert.match(JSON.stringify(events), /call_1/)
  })

  it('OpenAI: responses that are not stored, plain and streamed', async () => {
    const client = openaiOf(gateway.url)
    const asked = { model: 'chat', input: 'hi', store: false }
    assert.match(JSON.stringify(await twice(() => client.responses.create(asked))), /"Hello"/)
    upstream.requests.length = 0
    const events = await twice(() => client.responses.create({ ...asked, stream: true }), eventsOf)
    assert.match(JSON.stringify(events), /response\.completed/)
  })

  it('Anthropic: messages, plain and streamed', async () => {
    const client = anthropicOf(gateway.url)
    const asked = { model: 'claude', max_tokens: 9, messages: user('hi') }
    assert.match(
      JSON.stringify(await twice(() => client.messages.create(asked))),
      /"Hello".*"output_tokens":3/,
    )
    upstream.requests.length = 0
    const events = await twice(() => client.messages.create({ ...asked, stream: true }), eventsOf)
    assert.match(JSON.stringify(events), /message_stop/)
  })
})
