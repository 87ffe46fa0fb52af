import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import OpenAI from 'openai'
import { cleaningUp } from '../../support/clean-up.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import {
  type KeepingUpstream,
  messageItem,
  numbered,
  responseBody,
  startKeepingUpstream,
} from '../../support/responses-upstream.ts'
import { answerJson, stream } from '../../support/scripted-upstream.ts'
import { openaiOf, read, rejection } from './clients.ts'

const WEATHER = {
  type: 'function' as const,
  name: 'weather',
  strict: true,
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}
const CALL = {
  id: 'fc_1',
  type: 'function_call' as const,
  call_id: 'call_1',
  name: 'weather',
  arguments: '{"city":"Rome"}',
  status: 'completed' as const,
}

let one: KeepingUpstream
let two: KeepingUpstream
let gateway: TestGateway
let client: OpenAI
let scripts: KeepingUpstream['script'][]

const cleanUp = cleaningUp()
before(async () => {
  one = await startKeepingUpstream('one')
  cleanUp.after(() => one.close())
  two = await startKeepingUpstream('two')
  cleanUp.after(() => two.close())
  scripts = [one.script, two.script]
  gateway = await startGateway({
    lines: [one, two].map(({ url }) => ({ url, circuit: { minimumCalls: 1000 } })),
  })
  cleanUp.after(() => gateway.close())
  client = openaiOf(gateway.url, { maxRetries: 2 })
})
beforeEach(() => {
  for (const [i, upstream] of [one, two].entries()) {
    upstream.requests.length = 0
    upstream.script = scripts[i] as KeepingUpstream['script']
  }
})

const ask = { model: 'chat', input: 'hi' }
const fail: KeepingUpstream['script'] = (res) => answerJson(res, 500, { error: { message: 'down' } })

describe('the OpenAI SDK and responses, plain', () => {
  it('gets the response, its usage and the request id', async () => {
    const { data, request_id } = await client.responses.create(ask).withResponse()
    assert.equal(data.output_text, 'I am one')
    assert.equal(data.status, 'completed')
    assert.equal(data.usage?.total_tokens, 10)
    assert.match(request_id ?? '', /^req_/)
    const entry = await gateway.entry(request_id)
    assert.deepEqual(entry.usage, {
      input_tokens: 7,
      cached_input_tokens: 2,
      cache_write_tokens: 0,
      output_tokens: 3,
      reasoning_tokens: 1,
      source: 'measured',
    })
  })

  it('gets the call of a function, and the answer to its result', async () => {
    one.script = (res, { json }) =>
      answerJson(res, 200, responseBody(Array.isArray(json.input) ? [messageItem('Sunny')] : [CALL]))
    const first = await client.responses.create({ ...ask, tools: [WEATHER] })
    assert.deepEqual(first.output[0], CALL)
    const input = [CALL, { type: 'function_call_output' as const, call_id: 'call_1', output: '22 °C' }]
    const second = await client.responses.create({ ...ask, input, tools: [WEATHER] })
    assert.equal(second.output_text, 'Sunny')
    assert.deepEqual(one.requests[1]?.json.input, input)
  })

  it('gets reasoning, a refusal, and an answer cut by its length', async () => {
    const reasoning = {
      id: 'rs_1',
      type: 'reasoning',
      summary: [{ type: 'summary_text', text: 'Hm' }],
    }
    const refusal = { ...messageItem(''), content: [{ type: 'refusal', refusal: 'I will not.' }] }
    const cut = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }
    one.script = (res) => answerJson(res, 200, responseBody([reasoning, refusal], cut))
    const answer = await client.responses.create(ask)
    assert.equal(answer.output[0]?.type, 'reasoning')
    assert.deepEqual(answer.output[1]?.type === 'message' && answer.output[1].content, refusal.content)
    assert.equal(answer.incomplete_details?.reason, 'max_output_tokens')
    assert.equal(two.requests.length, 0)
  })

  it('parses structured output', async () => {
    one.script = (res) => answerJson(res, 200, responseBody([messageItem('{"city":"Rome"}')]))
    const schema = { ...WEATHER.parameters, additionalProperties: false }
    const format = { type: 'json_schema' as const, name: 'place', strict: true, schema }
    const answer = await client.responses.parse({ ...ask, text: { format } })
    assert.deepEqual(JSON.parse(answer.output_text), { city: 'Rome' })
  })

  it('raises the class of what went wrong, and retries as the tier says', async () => {
    const background = await rejection(client.responses.create({ ...ask, background: true }))
    assert.ok(background instanceof OpenAI.BadRequestError)
    assert.equal(background.code, 'unsupported_feature')
    assert.equal(background.param, 'background')
    const unknown = await rejection(client.responses.create({ ...ask, previous_response_id: 'resp_no' }))
    assert.ok(unknown instanceof OpenAI.NotFoundError)
    assert.equal(unknown.code, 'not_found')
    assert.equal(one.requests.length, 0)
    one.script = (res) =>
      answerJson(
        res,
        200,
        responseBody([], { status: 'failed', error: { code: 'server_error', message: 'x' } }),
      )
    two.script = one.script
    const failed = await rejection(client.responses.create(ask, { maxRetries: 0 }))
    assert.ok(failed instanceof OpenAI.InternalServerError)
    assert.equal(failed.code, 'all_candidates_failed')
  })
})

describe('the OpenAI SDK and responses, streamed', () => {
  it('gets the events in their order, named and numbered as they came', async () => {
    const events = await read(await client.responses.create({ ...ask, stream: true }))
    assert.deepEqual(
      events.map(({ sequence_number }) => sequence_number),
      events.map((_, i) => i),
    )
    const said = events.map((event) => (event.type === 'response.output_text.delta' ? event.delta : ''))
    assert.equal(said.join(''), 'I am one')
    assert.equal(events[0]?.type, 'response.created')
    assert.equal(events.at(-1)?.type, 'response.completed')
  })

  it('stream().finalResponse() is the whole response', async () => {
    const running = client.responses.stream(ask)
    const deltas: string[] = []
    running.on('response.output_text.delta', ({ delta }) => deltas.push(delta))
    const whole = await running.finalResponse()
    assert.equal(whole.output_text, 'I am one')
    assert.deepEqual(deltas, ['I ', 'am ', 'one'])
    assert.equal(whole.usage?.output_tokens, 3)
  })

  it('stream() puts the call of a function together from its pieces', async () => {
    const begun = { ...CALL, arguments: '', status: 'in_progress' }
    const place = { item_id: 'fc_1', output_index: 0 }
    const type = 'response.function_call_arguments'
    const empty = responseBody([], { status: 'in_progress', usage: null })
    one.script = (res) =>
      stream(
        res,
        numbered([
          { type: 'response.created', response: empty },
          { type: 'response.output_item.added', output_index: 0, item: begun },
          { type: `${type}.delta`, ...place, delta: '{"city":' },
          { type: `${type}.delta`, ...place, delta: '"Rome"}' },
          { type: `${type}.done`, ...place, name: 'weather', arguments: CALL.arguments },
          { type: 'response.output_item.done', output_index: 0, item: CALL },
          { type: 'response.completed', response: responseBody([CALL]) },
        ]),
      )
    const whole = await client.responses.stream({ ...ask, tools: [WEATHER] }).finalResponse()
    const [call] = whole.output
    assert.ok(call?.type === 'function_call')
    assert.deepEqual(JSON.parse(call.arguments), { city: 'Rome' })
  })

  it('an aborted stream ends the upstream request', async () => {
    const cut = Promise.withResolvers<void>()
    const { script } = one
    one.script = async (res, request, index) => {
      res.on('close', () => cut.resolve())
      const end = res.end.bind(res)
      res.end = (() => res) as typeof end
      await script(res, request, index)
    }
    const running = await client.responses.create({ ...ask, stream: true })
    for await (const event of running) if (event.type === 'response.output_text.delta') break
    await cut.promise
    assert.equal(one.requests[0]?.cut, true)
  })
})

describe('the OpenAI SDK and stored responses', () => {
  it('goes on from a response over two lines, each conversation on its own', async () => {
    const here = await client.responses.create(ask)
    one.script = fail
    const there = await client.responses.create(ask)
    one.script = scripts[0] as KeepingUpstream['script']
    assert.deepEqual([here.output_text, there.output_text], ['I am one', 'I am two'])
    let [a, b] = [here.id, there.id]
    for (let turn = 0; turn < 3; turn++) {
      const first = await client.responses.create({ ...ask, previous_response_id: a })
      const second = await client.responses.stream({ ...ask, previous_response_id: b }).finalResponse()
      assert.deepEqual([first.output_text, second.output_text], ['I am one', 'I am two'])
      assert.deepEqual([first.previous_response_id, second.previous_response_id], [a, b])
      ;[a, b] = [first.id, second.id]
    }
  })

  it('is retrieved, lists its input, and is deleted', async () => {
    const { id } = await client.responses.create(ask)
    assert.equal((await client.responses.retrieve(id)).output_text, 'I am one')
    const items = await read(client.responses.inputItems.list(id))
    assert.equal(items.length, 1)
    await client.responses.delete(id)
    const gone = await rejection(client.responses.retrieve(id))
    assert.ok(gone instanceof OpenAI.NotFoundError)
    assert.equal(gone.code, 'not_found')
    assert.match(gone.requestID ?? '', /^req_/)
  })

  it('cannot be cancelled or streamed again', async () => {
    const { id } = await client.responses.create(ask)
    const cancelled = await rejection(client.responses.cancel(id))
    assert.ok(cancelled instanceof OpenAI.ConflictError)
    assert.equal(cancelled.code, 'conflict')
    const streamed = await rejection(client.responses.retrieve(id, { stream: true }))
    assert.ok(streamed instanceof OpenAI.BadRequestError)
    assert.equal(streamed.code, 'unsupported_feature')
  })
})
