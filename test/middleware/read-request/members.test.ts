import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatBody, messageBody } from '../../support/gateway.ts'
import { suiteGateway } from '../../support/suite-gateway.ts'
import { refusalOf } from './refusal.ts'

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'
const user = (content: unknown) => [{ role: 'user', content }]

describe('a member that the gateway needs and cannot use is named as the caller wrote it', async () => {
  const { upstream, gateway } = await suiteGateway()

  const chat: [param: string, body: Record<string, unknown>][] = [
    ['model', { model: undefined }],
    ['model', { model: '' }],
    ['model', { model: 7 }],
    ['messages', { messages: undefined }],
    ['messages', { messages: null }],
    ['messages', { messages: [] }],
    ['messages', { messages: { 0: { role: 'user' } } }],
    ['messages[0]', { messages: [null] }],
    ['messages[1].role', { messages: [...user('hi'), { role: 'robot', content: 'hi' }] }],
    ['messages[0].content', { messages: user(7) }],
    ['messages[0].content[1].type', { messages: user([{ type: 'text', text: 'a' }, { text: 'b' }]) }],
    ['messages[0].content[0].text', { messages: user([{ type: 'text', text: 1 }]) }],
    ['messages[0].content[0].image_url.url', { messages: user([{ type: 'image_url', image_url: {} }]) }],
    ['messages[0].tool_calls[0]', { messages: [{ role: 'assistant', tool_calls: [1] }] }],
    ['stream', { stream: 'yes' }],
    ['stream_options', { stream_options: [] }],
    ['stream_options.include_usage', { stream_options: { include_usage: 1 } }],
    ['n', { n: 0 }],
    ['n', { n: 1.5 }],
    ['n', { n: 1e9 }],
    ['max_tokens', { max_tokens: 0 }],
    ['max_completion_tokens', { max_completion_tokens: 2 ** 60 }],
    ['temperature', { temperature: 3 }],
    ['top_p', { top_p: -1 }],
    ['tools', { tools: {} }],
    ['tools[1].type', { tools: [{ type: 'function' }, {}] }],
    ['tools[1].type', { tools: [{ name: 'f', input_schema: {} }, { type: 7 }] }],
    ['functions[0].name', { functions: [{}] }],
    ['response_format.type', { response_format: {} }],
    ['reasoning_effort', { reasoning_effort: 3 }],
    ['provider', { provider: 'openai' }],
    ['provider.only', { provider: { only: 'openai' } }],
    ['provider.only[1]', { provider: { only: ['a', 1] } }],
    ['provider.order', { provider: { order: Array.from({ length: 101 }, () => 'a') } }],
    ['provider.sort', { provider: { sort: 'beauty' } }],
    ['provider.max_price.prompt', { provider: { max_price: { prompt: '-1' } } }],
    ['provider.max_price.tokens', { provider: { max_price: { tokens: 1 } } }],
    ['provider.region[0]', { provider: { region: [1] } }],
    ['provider.allow_fallbacks', { provider: { allow_fallbacks: 'no' } }],
    ['provider.require_parameters', { provider: { require_parameters: true } }],
  ]
  for (const [param, body] of chat) {
    it(`${CHAT}: ${param} of ${JSON.stringify(body).slice(0, 70)}`, async () => {
      const refusal = await refusalOf(await gateway.post(CHAT, chatBody(body)))
      assert.equal(refusal.status, 400)
      assert.equal(refusal.code, 'invalid_request')
      assert.equal(refusal.type, 'invalid_request_error')
      assert.equal(refusal.param, param)
      assert.ok(refusal.message.startsWith(param), refusal.message)
      assert.equal(upstream.requests.length, 0)
    })
  }

  const message: [param: string, body: Record<string, unknown>][] = [
    ['max_tokens', { max_tokens: undefined }],
    ['max_tokens', { max_tokens: -1 }],
    ['messages[1].role', { messages: [...user('hi'), { role: 'tool', content: 'hi' }] }],
    ['messages[0].content', { messages: user(undefined) }],
    ['messages[0].content[0].type', { messages: user([{ text: 'hi' }]) }],
    ['system', { system: 7 }],
    ['system[0].type', { system: [{}] }],
    ['temperature', { temperature: 1.5 }],
    ['tools[0]', { tools: ['search'] }],
    ['thinking.type', { thinking: {} }],
    ['output_config.format.type', { output_config: { format: {} } }],
    ['provider.ignore', { provider: { ignore: 1 } }],
  ]
  for (const [param, body] of message) {
    it(`${MESSAGES}: ${param} of ${JSON.stringify(body).slice(0, 70)}`, async () => {
      const refusal = await refusalOf(await gateway.post(MESSAGES, messageBody(body)))
      assert.equal(refusal.status, 400)
      // This protocol has neither code nor param: the message names the member.
      assert.equal(refusal.type, 'invalid_request_error')
      assert.equal(refusal.code, undefined)
      assert.ok(refusal.message.startsWith(param), refusal.message)
      assert.equal(upstream.requests.length, 0)
    })
  }

  it('half a million faulty messages are one fault, told in no time', async () => {
    const startedAt = performance.now()
    const body = `{"model":"chat","messages":[${'0,'.repeat(490_000)}0]}`
    const refusal = await refusalOf(await gateway.post(CHAT, body))
    assert.equal(refusal.param, 'messages[0]')
    assert.ok(performance.now() - startedAt < 5000)
  })

  it('members with null where the APIs allow it are as good as absent', async () => {
    const nulls = [
      'stream',
      'stream_options',
      'n',
      'max_tokens',
      'max_completion_tokens',
      'temperature',
      'top_p',
    ]
    const more = ['tools', 'functions', 'response_format', 'reasoning_effort', 'provider']
    const body = chatBody(Object.fromEntries([...nulls, ...more].map((name) => [name, null])))
    assert.equal((await gateway.post(CHAT, body)).status, 200)
  })
})

describe('the provider constraint in the header X-Gateway-Provider', async () => {
  const { upstream, gateway } = await suiteGateway((url) => ({ lines: [{ url }, { url }] }))

  const withHeader = (header: string, body: Record<string, unknown> = {}) =>
    gateway.post(CHAT, chatBody(body), { headers: { 'x-gateway-provider': header } })

  it('is obeyed, and stays behind', async () => {
    assert.equal((await withHeader('{"only":["provider-1"]}')).status, 200)
    assert.equal(upstream.requests.at(-1)?.json.model, 'upstream-chat-1')
    assert.equal(upstream.requests.at(-1)?.headers['x-gateway-provider'], undefined)
  })

  it('gives way to the member of the body', async () => {
    assert.equal(
      (await withHeader('{"only":["provider-1"]}', { provider: { only: ['line-0'] } })).status,
      200,
    )
    assert.equal(upstream.requests.at(-1)?.json.model, 'upstream-chat-0')
  })

  const faults: [header: string, param: string][] = [
    ['', 'X-Gateway-Provider'],
    ['{', 'X-Gateway-Provider'],
    ['openai', 'X-Gateway-Provider'],
    ['[]', 'X-Gateway-Provider'],
    ['null', 'X-Gateway-Provider'],
    ['{"only":[1]}', 'X-Gateway-Provider.only[0]'],
    ['{"onyl":[]}', 'X-Gateway-Provider.onyl'],
  ]
  for (const [header, param] of faults) {
    it(`holding ${header === '' ? 'nothing' : header} is a fault of ${param}`, async () => {
      const before = upstream.requests.length
      const refusal = await refusalOf(await withHeader(header))
      assert.equal(refusal.code, 'invalid_request')
      assert.equal(refusal.param, param)
      assert.equal(upstream.requests.length, before)
    })
  }
})
