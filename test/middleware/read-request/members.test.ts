import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { estimateTokens, OPERATIONS } from '../../../lib/core/operations/index.ts'
import { ENDPOINTS } from '../../support/endpoints.ts'
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
    ['tools[1].type', { tools: [{ type: 'function', function: { name: 'f' } }, {}] }],
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

  it('half a million faulty messages are one fault, reported at once', async () => {
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

describe('a member whose name differs from a checked one in case or separators only', async () => {
  const BODIES: Readonly<Record<string, Record<string, unknown>>> = {
    '/v1/chat/completions': chatBody(),
    '/v1/completions': { model: 'chat', prompt: 'hi' },
    '/v1/messages': messageBody(),
    '/v1/messages/count_tokens': messageBody(),
    '/v1/responses': { model: 'chat', input: 'hi' },
    '/v1/embeddings': { model: 'vectors', input: 'hi' },
    '/v1/images/generations': { model: 'pictures', prompt: 'a cat' },
    '/v1/rerank': { model: 'ranks', query: 'q', documents: ['d'] },
  }

  /** Names that some upstream takes for the same. */
  function variantsOf(name: string): string[] {
    const camel = name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase())
    const kelvin = name.replace('k', '\u212a').replace('s', '\u017f')
    const all = [
      name.toUpperCase(),
      name[0]?.toUpperCase() + name.slice(1),
      name.slice(0, -1) + name.at(-1)?.toUpperCase(),
      camel,
      name.replaceAll('_', '-'),
      name.replaceAll('_', ''),
      kelvin,
    ]
    return [...new Set(all)].filter((variant) => variant !== name)
  }

  const { upstream, gateway } = await suiteGateway((url) => ({
    lines: [{ url }],
    config: {
      models: [
        { id: 'chat', kind: 'chat' },
        { id: 'vectors', kind: 'embedding' },
        { id: 'pictures', kind: 'image' },
        { id: 'ranks', kind: 'rerank' },
      ],
    },
  }))

  async function refusedParam(path: string, body: object): Promise<void> {
    const before = upstream.requests.length
    const response = await gateway.post(path, body)
    assert.equal(response.status, 400, `${path} ${JSON.stringify(body)}`)
    const { code, type, message } = await refusalOf(response)
    assert.equal(code ?? type, code ? 'invalid_request' : 'invalid_request_error')
    assert.match(message, /differs from one that is only in case/)
    assert.equal(upstream.requests.length, before)
  }

  for (const { path, schema } of OPERATIONS) {
    const body = BODIES[path]
    if (!body) continue
    const { shape } = schema as unknown as { shape: object }
    for (const name of Object.keys(shape)) {
      it(`${path}: any variant of "${name}" is refused, beside it and in place of it`, async () => {
        for (const variant of variantsOf(name)) {
          await refusedParam(path, { ...body, [variant]: body[name] ?? null })
          const { [name]: value = null, ...others } = body
          await refusedParam(path, { [variant]: value, ...others })
        }
      })
    }
  }

  it('in what is checked inside of members, too, and the param says where', async () => {
    for (const [body, param] of [
      [chatBody({ stream: true, stream_options: { Include_Usage: true } }), 'stream_options.Include_Usage'],
      [chatBody({ messages: [{ role: 'user', content: 'hi', Content: 'more' }] }), 'messages[0].Content'],
      [
        chatBody({ messages: [{ role: 'user', content: [{ type: 'text', text: 'a', TEXT: 'b' }] }] }),
        'messages[0].content[0].TEXT',
      ],
      [chatBody({ response_format: { type: 'text', Type: 'json_schema' } }), 'response_format.Type'],
      [chatBody({ tools: [{ type: 'function', tYpe: 'x', function: { name: 'f' } }] }), 'tools[0].tYpe'],
    ] as const) {
      const response = await gateway.post('/v1/chat/completions', body)
      assert.equal((await refusalOf(response)).param, param)
    }
  })

  it('other unknown members pass, whatever their case', async () => {
    const response = await gateway.post(
      '/v1/chat/completions',
      chatBody({ Seed: 1, topK: 2, modelVersion: 3, models: null, _: 4, '': 5, ['x'.repeat(100_000)]: 6 }),
    )
    assert.equal(response.status, 200)
  })
})

const EMBEDDINGS = '/v1/embeddings'
const COMPLETIONS = '/v1/completions'
const IMAGES = '/v1/images/generations'
const RERANK = '/v1/rerank'
const COUNT = '/v1/messages/count_tokens'
const MODELS = {
  [EMBEDDINGS]: 'embedding',
  [COMPLETIONS]: 'chat',
  [IMAGES]: 'image',
  [RERANK]: 'rerank',
  [COUNT]: 'chat',
} as const
type Path = keyof typeof MODELS

const WORDS = 'some words of English text'
const TOKENS = estimateTokens(WORDS)
const long = (tokens: number) => ' the'.repeat(tokens)

describe('a body', async () => {
  const kinds = ['chat', 'embedding', 'image', 'rerank'] as const
  const { upstream, gateway } = await suiteGateway((url) => ({
    lines: [
      { url, models: Object.fromEntries(kinds.map((kind) => [kind, 'upstream'])) },
      { url, protocol: 'anthropic', models: { chat: 'upstream' } },
    ],
    config: { models: kinds.map((kind) => ({ id: kind, kind, contextWindow: 100 })) },
  }))
  upstream.script = (res, request, index) =>
    ENDPOINTS.find(({ path }) => path === request.path)?.answer(res, request, index)
  const post = (path: Path, body: object) => gateway.post(path, { model: MODELS[path], ...body })

  const faults: [path: Path, param: string, body: Record<string, unknown>][] = [
    [EMBEDDINGS, 'input', {}],
    [EMBEDDINGS, 'input', { input: null }],
    [EMBEDDINGS, 'input', { input: { text: 'a' } }],
    [EMBEDDINGS, 'input', { input: [] }],
    [EMBEDDINGS, 'input[1]', { input: ['a', 1] }],
    [EMBEDDINGS, 'input[2]', { input: [1, 2, 2.5] }],
    [EMBEDDINGS, 'input[1]', { input: [1, -1] }],
    [EMBEDDINGS, 'input[0]', { input: [null] }],
    [EMBEDDINGS, 'input[1]', { input: [[1], []] }],
    [EMBEDDINGS, 'input[1][1]', { input: [[1], [2, '3']] }],
    [EMBEDDINGS, 'provider.sort', { input: 'a', provider: { sort: 'beauty' } }],
    [COMPLETIONS, 'prompt', {}],
    [COMPLETIONS, 'prompt', { prompt: 7 }],
    [COMPLETIONS, 'prompt[1]', { prompt: ['a', ['b']] }],
    [COMPLETIONS, 'n', { prompt: 'a', n: 0 }],
    [COMPLETIONS, 'best_of', { prompt: 'a', best_of: 1000 }],
    [COMPLETIONS, 'max_tokens', { prompt: 'a', max_tokens: -1 }],
    [COMPLETIONS, 'stream_options', { prompt: 'a', stream_options: 'usage' }],
    [IMAGES, 'prompt', {}],
    [IMAGES, 'prompt', { prompt: '' }],
    [IMAGES, 'n', { prompt: 'a', n: 1.5 }],
    [IMAGES, 'n', { prompt: 'a', n: 129 }],
    [RERANK, 'query', { documents: ['a'] }],
    [RERANK, 'documents', { query: 'q' }],
    [RERANK, 'documents', { query: 'q', documents: [] }],
    [RERANK, 'documents[1]', { query: 'q', documents: ['a', 1] }],
    [RERANK, 'documents[0]', { query: 'q', documents: [['a']] }],
    [RERANK, 'top_n', { query: 'q', documents: ['a'], top_n: 0 }],
  ]
  for (const [path, param, body] of faults) {
    it(`${path}: ${JSON.stringify(body)} is refused, naming ${param}`, async () => {
      const refusal = await refusalOf(await post(path, body))
      assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'invalid_request', param])
      assert.ok(refusal.message.startsWith(`${param}: `), refusal.message)
    })
  }

  it(`${COUNT}: needs messages and no max_tokens`, async () => {
    const refusal = await refusalOf(await post(COUNT, {}))
    assert.deepEqual([refusal.status, refusal.type], [400, 'invalid_request_error'])
    assert.match(refusal.message, /^messages: /)
  })

  for (const { path, kind, request } of ENDPOINTS) {
    if (!(path in MODELS) || path === COMPLETIONS || path === IMAGES) continue
    it(`${path}: a stream is unsupported_feature`, async () => {
      const before = upstream.requests.length
      const body = { ...(JSON.parse(request(kind).body) as object), stream: true }
      const refusal = await refusalOf(await gateway.post(path, body))
      assert.equal(refusal.status, 400)
      assert.match(refusal.message, /does not stream/)
      if (path !== COUNT) assert.deepEqual([refusal.code, refusal.param], ['unsupported_feature', 'stream'])
      assert.equal(upstream.requests.length, before)
    })
  }

  const counted: [path: Path, tokens: number, body: Record<string, unknown>][] = [
    [EMBEDDINGS, TOKENS, { input: WORDS }],
    [EMBEDDINGS, 2 * TOKENS, { input: [WORDS, WORDS] }],
    [EMBEDDINGS, 4, { input: [15339, 1917, 0, 1] }],
    [
      EMBEDDINGS,
      5,
      {
        input: [
          [1, 2],
          [3, 4, 5],
        ],
      },
    ],
    [COMPLETIONS, 3 + TOKENS, { prompt: WORDS }],
    [COMPLETIONS, 3 + 2 * TOKENS, { prompt: [WORDS, WORDS] }],
    [COMPLETIONS, 3 + 4 * TOKENS, { prompt: [WORDS, WORDS], suffix: WORDS }],
    [COMPLETIONS, 3 + 2, { prompt: [1, 2] }],
    [IMAGES, TOKENS, { prompt: WORDS }],
    [RERANK, 4 * TOKENS, { query: WORDS, documents: [WORDS, WORDS] }],
    [RERANK, 2 * TOKENS, { query: WORDS, documents: [{ text: WORDS, id: 7 }] }],
    [COUNT, 3 + 4 + TOKENS, { messages: [{ role: 'user', content: WORDS }] }],
  ]
  for (const [path, tokens, body] of counted) {
    it(`${path}: ${JSON.stringify(body).slice(0, 80)} counts ${tokens} tokens`, async () => {
      const response = await post(path, body)
      const entry = await gateway.entry(response.headers.get('x-request-id'))
      assert.equal(entry.request?.estimated_input_tokens, tokens)
    })
  }

  const tooLong: [path: Path, body: Record<string, unknown>][] = [
    [EMBEDDINGS, { input: ['short', long(200)] }],
    [COMPLETIONS, { prompt: long(200) }],
    [COMPLETIONS, { prompt: 'short', max_tokens: 200 }],
    [IMAGES, { prompt: long(200) }],
    [RERANK, { query: long(60), documents: ['short', long(60)] }],
  ]
  for (const [path, body] of tooLong) {
    it(`${path}: what does not fit at a time is context_too_long (${Object.keys(body)})`, async () => {
      assert.equal((await refusalOf(await post(path, body))).code, 'context_too_long')
    })
  }

  const fitting: [path: Path, body: Record<string, unknown>][] = [
    [EMBEDDINGS, { input: Array.from({ length: 50 }, () => long(50)) }],
    [COMPLETIONS, { prompt: [long(60), long(60)], max_tokens: 10 }],
    [RERANK, { query: 'which?', documents: Array.from({ length: 50 }, () => long(50)) }],
    [COUNT, { messages: [{ role: 'user', content: long(500) }] }],
  ]
  for (const [path, body] of fitting) {
    it(`${path}: what fits into the window one by one is sent`, async () => {
      const response = await post(path, body)
      assert.equal(response.status, 200, await response.text())
    })
  }
})

describe('a request that names further models for the upstream to fall back to', async () => {
  const BODIES: Readonly<Record<string, object>> = {
    '/v1/chat/completions': chatBody(),
    '/v1/messages': messageBody(),
    '/v1/responses': { model: 'chat', input: 'hi' },
    '/v1/embeddings': { model: 'vectors', input: 'hi' },
  }

  const { upstream, gateway } = await suiteGateway((url) => ({
    lines: [{ url }],
    config: {
      models: [
        { id: 'chat', kind: 'chat' },
        { id: 'vectors', kind: 'embedding' },
      ],
    },
  }))

  const TAKES_MODELS = ['/v1/chat/completions', '/v1/responses']

  for (const [path, body] of Object.entries(BODIES))
    for (const member of TAKES_MODELS.includes(path) ? ['fallbacks'] : ['models', 'fallbacks'])
      it(`is refused, and not sent: ${member} of ${path}`, async () => {
        for (const value of [['dear-model'], 'dear-model', []]) {
          const response = await gateway.post(path, { ...body, [member]: value })
          assert.equal(response.status, 400)
          const { message, param } = await refusalOf(response)
          assert.match(message, /^The `(models|fallbacks)` parameter is not supported\. Leave it out/)
          if (path !== '/v1/messages') assert.equal(param, member)
        }
        assert.equal(upstream.requests.length, 0)
      })

  it('is served where it names none', async () => {
    const { model } = chatBody()
    for (const more of [
      { models: null },
      { models: [] },
      { models: [model] },
      { fallbacks: null },
      { fallbacks: 'default' },
      { models: [model], fallbacks: 'default' },
    ]) {
      const response = await gateway.post('/v1/chat/completions', chatBody(more))
      assert.equal(response.status, 200)
      assert.doesNotMatch(String(upstream.requests.at(-1)?.raw), /"models"/)
    }
  })

  it('is refused where a name in "models" is none of a model of its kind', async () => {
    const { model } = chatBody()
    const sent = upstream.requests.length
    for (const path of TAKES_MODELS)
      for (const [models, named] of [
        [[model, 'dear-model'], 'models[1]'],
        [['vectors'], 'models[0]'],
        [[model, 7], 'models[1]'],
        [{}, 'models'],
      ] as const) {
        const response = await gateway.post(path, { ...BODIES[path], models })
        assert.equal((await refusalOf(response)).param, named)
      }
    const variant = await gateway.post('/v1/chat/completions', chatBody({ Models: [model] }))
    assert.equal((await refusalOf(variant)).param, 'Models')
    assert.equal(upstream.requests.length, sent)
    const both = chatBody({ models: [model], fallbacks: ['dear-model'] })
    assert.equal((await refusalOf(await gateway.post('/v1/chat/completions', both))).param, 'fallbacks')
  })
})
