import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import {
  chatAnswer,
  chatChunk,
  chatEvents,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from '../../support/scripted-upstream.ts'
import { openaiOf, read, user } from './clients.ts'

const WEATHER = {
  type: 'function' as const,
  function: {
    name: 'weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}
const CALL = {
  id: 'call_1',
  type: 'function' as const,
  function: { name: 'weather', arguments: '{"city":"Rome"}' },
}

let upstream: ScriptedUpstream
let gateway: TestGateway
let client: ReturnType<typeof openaiOf>

const cleanUp = cleaningUp()
before(async () => {
  upstream = await startUpstream()
  cleanUp.after(() => upstream.close())
  gateway = await startGateway({ lines: [{ url: upstream.url }] })
  cleanUp.after(() => gateway.close())
  client = openaiOf(gateway.url)
})
beforeEach(() => {
  upstream.requests.length = 0
  upstream.script = (res, { json }) =>
    json.stream ? stream(res, chatEvents(['Hel', 'lo', ' there'])) : chatAnswer(res, 'Hello there')
})

const ask = { model: 'chat', messages: user('hi') }

describe('the OpenAI SDK, plain', () => {
  it('gets the answer, its usage and the request id', async () => {
    const { data, request_id } = await client.chat.completions.create(ask).withResponse()
    assert.equal(data.choices[0]?.message.content, 'Hello there')
    assert.equal(data.choices[0]?.finish_reason, 'stop')
    assert.equal(data.usage?.total_tokens, 10)
    assert.match(request_id ?? '', /^req_/)
    assert.equal((await gateway.entry(request_id)).outcome, 'completed')
  })

  it('finds the request id on the answer itself', async () => {
    assert.match((await client.chat.completions.create(ask))._request_id ?? '', /^req_/)
  })

  it('gets a tool call, and the answer to its result', async () => {
    upstream.script = (res, { json }) =>
      json.messages.length === 1
        ? chatAnswer(res, '', {
            choices: [
              {
                index: 0,
                message: { role: 'assistant', content: null, tool_calls: [CALL] },
                finish_reason: 'tool_calls',
              },
            ],
          })
        : chatAnswer(res, 'Sunny')
    const first = await client.chat.completions.create({ ...ask, tools: [WEATHER] })
    const message = first.choices[0]?.message
    assert.deepEqual(message?.tool_calls, [CALL])
    const second = await client.chat.completions.create({
      model: 'chat',
      messages: [...ask.messages, message!, { role: 'tool', tool_call_id: 'call_1', content: '22 °C' }],
      tools: [WEATHER],
    })
    assert.equal(second.choices[0]?.message.content, 'Sunny')
    assert.deepEqual(upstream.requests[1]?.json.messages[1]?.tool_calls, [CALL])
    assert.deepEqual(upstream.requests[1]?.json.messages[2], {
      role: 'tool',
      tool_call_id: 'call_1',
      content: '22 °C',
    })
  })

  it('parses structured output', async () => {
    upstream.script = (res) => chatAnswer(res, '{"city":"Rome"}')
    const format = {
      type: 'json_schema' as const,
      json_schema: { name: 'place', schema: WEATHER.function.parameters },
    }
    const answer = await client.chat.completions.parse({ ...ask, response_format: format })
    assert.deepEqual(JSON.parse(answer.choices[0]?.message.content ?? ''), { city: 'Rome' })
    assert.deepEqual(upstream.requests[0]?.json.response_format, format)
  })
})

describe('the OpenAI SDK, streamed', () => {
  it('gets the chunks in their order, without a usage chunk that it did not ask for', async () => {
    const chunks = await read(await client.chat.completions.create({ ...ask, stream: true }))
    const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')
    assert.equal(text, 'Hello there')
    assert.equal(chunks.at(-1)?.choices[0]?.finish_reason, 'stop')
    assert.ok(chunks.every((chunk) => chunk.choices.length === 1 && !chunk.usage))
  })

  it('gets the usage chunk that it asked for', async () => {
    const options = { stream: true as const, stream_options: { include_usage: true } }
    const chunks = await read(await client.chat.completions.create({ ...ask, ...options }))
    assert.equal(chunks.at(-1)?.usage?.completion_tokens, 3)
  })

  it('stream().finalChatCompletion() is the whole answer', async () => {
    const running = client.chat.completions.stream({ ...ask, stream_options: { include_usage: true } })
    const deltas: string[] = []
    running.on('content', (delta) => deltas.push(delta))
    const whole = await running.finalChatCompletion()
    assert.equal(whole.choices[0]?.message.content, 'Hello there')
    assert.equal(whole.choices[0]?.finish_reason, 'stop')
    assert.deepEqual(deltas, ['Hel', 'lo', ' there'])
    assert.equal((await running.totalUsage()).completion_tokens, 3)
  })

  it('stream() puts a tool call together from its pieces', async () => {
    const piece = (fn: object, head: object = {}) =>
      chatChunk({ tool_calls: [{ index: 0, ...head, function: fn }] })
    upstream.script = (res) =>
      stream(res, [
        chatChunk({ role: 'assistant', content: null }),
        piece({ name: 'weather', arguments: '' }, { id: 'call_1', type: 'function' }),
        piece({ arguments: '{"city":' }),
        piece({ arguments: '"Rome"}' }),
        chatChunk({}, 'tool_calls'),
        'data: [DONE]\n\n',
      ])
    const whole = await client.chat.completions.stream({ ...ask, tools: [WEATHER] }).finalChatCompletion()
    const [call] = whole.choices[0]?.message.tool_calls ?? []
    assert.ok(call?.type === 'function')
    assert.equal(call.id, 'call_1')
    assert.deepEqual(JSON.parse(call.function.arguments), { city: 'Rome' })
    assert.equal(whole.choices[0]?.finish_reason, 'tool_calls')
  })

  it('an aborted stream ends the upstream request', async () => {
    const cut = Promise.withResolvers<void>()
    upstream.script = async (res) => {
      res.on('close', () => cut.resolve())
      await stream(res, chatEvents(['a', 'b']).slice(0, 2), { end: false })
    }
    const running = await client.chat.completions.create({ ...ask, stream: true })
    for await (const chunk of running) if (chunk.choices[0]?.delta.content === 'a') break
    await cut.promise
    assert.equal(upstream.requests[0]?.cut, true)
  })
})

describe('the OpenAI SDK and the models', () => {
  it('lists and retrieves them', async () => {
    const listed = await read(client.models.list())
    assert.deepEqual(
      listed.map(({ id, object }) => [id, object]),
      [['chat', 'model']],
    )
    const one = await client.models.retrieve('chat')
    assert.equal(one.id, 'chat')
    assert.equal(typeof one.created, 'number')
    assert.equal(upstream.requests.length, 0)
  })
})
