import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import {
  messageAnswer,
  messageEvent,
  messageEvents,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from '../../support/scripted-upstream.ts'
import { anthropicOf, read, user } from './clients.ts'

const WEATHER = {
  name: 'weather',
  input_schema: { type: 'object' as const, properties: { city: { type: 'string' } }, required: ['city'] },
}
const USE = { type: 'tool_use' as const, id: 'toolu_1', name: 'weather', input: { city: 'Rome' } }

let upstream: ScriptedUpstream
let gateway: TestGateway
let client: ReturnType<typeof anthropicOf>

const cleanUp = cleaningUp()
before(async () => {
  upstream = await startUpstream()
  cleanUp.after(() => upstream.close())
  gateway = await startGateway({ lines: [{ url: upstream.url, protocol: 'anthropic' }] })
  cleanUp.after(() => gateway.close())
  client = anthropicOf(gateway.url)
})
beforeEach(() => {
  upstream.requests.length = 0
  upstream.script = (res, { json }) =>
    json.stream ? stream(res, messageEvents(['Hel', 'lo', ' there'])) : messageAnswer(res, 'Hello there')
})

const ask = { model: 'chat', max_tokens: 100, messages: user('hi') }

describe('the Anthropic SDK, plain', () => {
  it('gets the answer, its usage and the request id', async () => {
    const { data, request_id } = await client.messages.create(ask).withResponse()
    assert.deepEqual(data.content, [{ type: 'text', text: 'Hello there' }])
    assert.equal(data.stop_reason, 'end_turn')
    assert.equal(data.usage.output_tokens, 3)
    assert.match(request_id ?? '', /^req_/)
    assert.equal((await gateway.entry(request_id ?? null)).outcome, 'completed')
  })

  it('finds the request id on the answer itself', async () => {
    assert.match((await client.messages.create(ask))._request_id ?? '', /^req_/)
  })

  it('gets a tool call, and the answer to its result', async () => {
    upstream.script = (res, { json }) =>
      json.messages.length === 1
        ? messageAnswer(res, '', { content: [USE], stop_reason: 'tool_use' })
        : messageAnswer(res, 'Sunny')
    const first = await client.messages.create({ ...ask, tools: [WEATHER] })
    assert.deepEqual(first.content, [USE])
    assert.equal(first.stop_reason, 'tool_use')
    const result = { type: 'tool_result' as const, tool_use_id: 'toolu_1', content: '22 °C' }
    const second = await client.messages.create({
      ...ask,
      tools: [WEATHER],
      messages: [
        ...ask.messages,
        { role: 'assistant', content: first.content },
        { role: 'user', content: [result] },
      ],
    })
    assert.deepEqual(second.content, [{ type: 'text', text: 'Sunny' }])
    assert.deepEqual(upstream.requests[1]?.json.messages[2], { role: 'user', content: [result] })
  })
})

describe('the Anthropic SDK, streamed', () => {
  it('gets the events in their order', async () => {
    const events = await read(await client.messages.create({ ...ask, stream: true }))
    assert.deepEqual(
      events.map(({ type }) => type),
      [
        'message_start',
        'content_block_start',
        'content_block_delta',
        'content_block_delta',
        'content_block_delta',
        'content_block_stop',
        'message_delta',
        'message_stop',
      ],
    )
  })

  it('stream().finalMessage() is the whole answer', async () => {
    const running = client.messages.stream(ask)
    const deltas: string[] = []
    running.on('text', (delta) => deltas.push(delta))
    const whole = await running.finalMessage()
    assert.deepEqual(
      whole.content.map((block) => block.type === 'text' && block.text),
      ['Hello there'],
    )
    assert.equal(whole.stop_reason, 'end_turn')
    assert.equal(whole.usage.output_tokens, 3)
    assert.deepEqual(deltas, ['Hel', 'lo', ' there'])
    assert.match(running.request_id ?? '', /^req_/)
  })

  it('stream() puts a tool call together from its pieces', async () => {
    const delta = (partial_json: string) =>
      messageEvent('content_block_delta', { index: 0, delta: { type: 'input_json_delta', partial_json } })
    const [start] = messageEvents([])
    upstream.script = (res) =>
      stream(res, [
        start!,
        messageEvent('content_block_start', { index: 0, content_block: { ...USE, input: {} } }),
        delta('{"city":'),
        delta('"Rome"}'),
        messageEvent('content_block_stop', { index: 0 }),
        messageEvent('message_delta', {
          delta: { stop_reason: 'tool_use', stop_sequence: null },
          usage: { output_tokens: 9 },
        }),
        messageEvent('message_stop'),
      ])
    const whole = await client.messages.stream({ ...ask, tools: [WEATHER] }).finalMessage()
    assert.equal(whole.stop_reason, 'tool_use')
    const [use] = whole.content
    assert.ok(use?.type === 'tool_use')
    assert.deepEqual(use.input, { city: 'Rome' })
  })

  it('an aborted stream ends the upstream request', async () => {
    const cut = Promise.withResolvers<void>()
    upstream.script = async (res) => {
      res.on('close', () => cut.resolve())
      await stream(res, messageEvents(['a', 'b']).slice(0, 4), { end: false })
    }
    const running = client.messages.stream(ask)
    running.on('text', () => running.abort())
    await assert.rejects(running.finalMessage(), { name: 'APIUserAbortError' })
    await cut.promise
    assert.equal(upstream.requests[0]?.cut, true)
  })
})

describe('the Anthropic SDK and the models', () => {
  it('lists and retrieves them', async () => {
    const listed = await read(client.models.list())
    assert.deepEqual(
      listed.map(({ id, type }) => [id, type]),
      [['chat', 'model']],
    )
    const one = await client.models.retrieve('chat')
    assert.equal(one.display_name, 'chat')
    assert.ok(!Number.isNaN(Date.parse(one.created_at)))
    assert.equal(upstream.requests.length, 0)
  })
})
