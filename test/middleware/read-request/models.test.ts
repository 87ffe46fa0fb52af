import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ModelKind } from '../../../lib/core/catalog/index.ts'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'
import { ENDPOINTS } from '../../support/endpoints.ts'
import { chatBody, messageBody, startGateway } from '../../support/gateway.ts'
import { startUpstream } from '../../support/scripted-upstream.ts'
import { suiteGateway } from '../../support/suite-gateway.ts'
import { refusalOf } from './refusal.ts'

describe('a request for a model', () => {
  const CHAT = '/v1/chat/completions'
  const MESSAGES = '/v1/messages'
  const ENDPOINTS = {
    embedding: 'POST /v1/embeddings',
    image: 'POST /v1/images/generations',
    rerank: 'POST /v1/rerank',
    video: 'POST /v1/videos',
  }
  const KINDS = Object.keys(ENDPOINTS) as (keyof typeof ENDPOINTS)[]
  const words = (tokens: number) => ' the'.repeat(tokens)

  describe('the path of a request', () => {
    it('is read as Express reads it: in any case, with or without a slash at its end', async (t) => {
      const upstream = await startUpstream()
      t.after(() => upstream.close())
      const gateway = await startGateway({ lines: [{ url: upstream.url }] })
      t.after(() => gateway.close())
      for (const path of [`${CHAT}/`, '/V1/Chat/Completions', `${CHAT}/?beta=true`]) {
        assert.equal((await gateway.post(path, chatBody())).status, 200, path)
      }
      assert.equal((await gateway.post(`${CHAT}//`, chatBody())).status, 404)
      assert.equal(upstream.requests.length, 3)
    })
  })

  describe('the model of a request', async () => {
    const { upstream, gateway } = await suiteGateway((url) => ({
      lines: [
        { url, models: { chat: 'a', plain: 'a', window: 'a', vast: 'a' }, contextWindow: 100 },
        { url, models: { window: 'b', vast: 'b' } },
        { url, models: { window: 'c' }, contextWindow: 5000 },
      ],
      config: {
        keys: [
          { id: 'all', account: 'acme', secret: 'sk-all' },
          {
            id: 'some',
            account: 'acme',
            secret: 'sk-test-1',
            allowModels: ['chat', 'plain', 'video*', 'w*', 'vast'],
          },
        ],
        models: [
          { id: 'chat', kind: 'chat' },
          { id: 'secret-chat', kind: 'chat' },
          { id: 'plain', kind: 'chat', features: [] },
          { id: 'window', kind: 'chat', contextWindow: 1000 },
          { id: 'vast', kind: 'chat' },
          { id: 'unserved', kind: 'chat', contextWindow: 50 },
          ...KINDS.map((kind) => ({ id: `${kind}-1`, kind })),
        ],
      },
    }))

    const ask = async (path: string, body: object, secret = 'sk-test-1') => {
      const before = upstream.requests.length
      const response = await gateway.post(path, body, { headers: { authorization: `Bearer ${secret}` } })
      const refusal = await refusalOf(response)
      assert.equal(upstream.requests.length, before, 'no upstream was asked')
      return refusal
    }

    it('that does not exist is model_not_found', async () => {
      for (const model of ['nope', 'CHAT', ' chat', '__proto__', 'constructor', 'x'.repeat(5000)]) {
        const refusal = await ask(CHAT, chatBody({ model }))
        assert.deepEqual([refusal.status, refusal.code, refusal.param], [404, 'model_not_found', undefined])
      }
    })

    for (const kind of KINDS) {
      it(`of the kind ${kind} is refused with the hint ${ENDPOINTS[kind]}`, async () => {
        for (const [path, body] of [
          [CHAT, chatBody({ model: `${kind}-1` })],
          [MESSAGES, messageBody({ model: `${kind}-1` })],
        ] as const) {
          const refusal = await ask(path, body, 'sk-all')
          assert.equal(refusal.status, 400)
          assert.ok(refusal.message.includes(ENDPOINTS[kind]), refusal.message)
          if (path === CHAT) assert.deepEqual([refusal.code, refusal.param], ['invalid_request', 'model'])
        }
      })
    }

    it('that the key may not use is model_not_allowed', async () => {
      const refusal = await ask(CHAT, chatBody({ model: 'secret-chat' }))
      assert.deepEqual([refusal.status, refusal.code, refusal.param], [403, 'model_not_allowed', undefined])
    })

    it('is checked in order: the body, its existence, the kind, the key, the provider, features, the window', async () => {
      const all = { stream: true, provider: { only: 1 }, messages: [{ role: 'user', content: words(100) }] }
      const inOrder: [code: string, body: object][] = [
        ['invalid_request', chatBody({ ...all, model: 'nope', n: 0 })],
        ['model_not_found', chatBody({ ...all, model: 'nope', provider: null })],
        ['invalid_request', chatBody({ ...all, model: 'embedding-1', provider: null })],
        ['model_not_allowed', chatBody({ ...all, model: 'unserved', provider: null })],
        ['unsupported_feature', chatBody({ ...all, model: 'plain', provider: null })],
        [
          'context_too_long',
          chatBody({ ...all, model: 'plain', provider: null, stream: false, max_tokens: 99 }),
        ],
      ]
      for (const [code, body] of inOrder) assert.equal((await ask(CHAT, body)).code, code)
    })

    const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } }
    const features: [feature: string, param: string, body: Record<string, unknown>][] = [
      ['streaming', 'stream', { stream: true }],
      ['tools', 'tools', { tools: [{ type: 'function', function: { name: 'f' } }] }],
      ['tools', 'functions', { functions: [{ name: 'f' }] }],
      [
        'image input',
        'messages[0].content[1]',
        { messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }, image] }] },
      ],
      ['structured output', 'response_format', { response_format: { type: 'json_object' } }],
      ['reasoning settings', 'reasoning_effort', { reasoning_effort: 'low' }],
      ['reasoning settings', 'reasoning', { reasoning: { effort: 'low' } }],
      ['reasoning settings', 'thinking', { thinking: { type: 'enabled', budget_tokens: 2000 } }],
    ]
    for (const [feature, param, body] of features) {
      it(`without ${feature} is unsupported_feature, naming ${param}`, async () => {
        const refusal = await ask(CHAT, chatBody({ model: 'plain', ...body }))
        assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'unsupported_feature', param])
        assert.match(refusal.message, new RegExp(feature))
      })
    }

    const source = { type: 'url', url: 'https://example.com/a.png' }
    const messageFeatures: [feature: string, body: Record<string, unknown>][] = [
      ['streaming', { stream: true }],
      ['tools', { tools: [{ name: 'f', input_schema: {} }] }],
      ['image input', { messages: [{ role: 'user', content: [{ type: 'image', source }] }] }],
      [
        'image input',
        {
          messages: [
            {
              role: 'user',
              content: [{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'image', source }] }],
            },
          ],
        },
      ],
      ['structured output', { output_config: { format: { type: 'json_schema', schema: {} } } }],
      ['reasoning settings', { thinking: { type: 'enabled', budget_tokens: 1024 } }],
    ]
    for (const [feature, body] of messageFeatures) {
      it(`without ${feature} is refused on ${MESSAGES} too (${JSON.stringify(body).slice(0, 40)})`, async () => {
        const refusal = await ask(MESSAGES, messageBody({ model: 'plain', ...body }))
        assert.deepEqual([refusal.status, refusal.type], [400, 'invalid_request_error'])
        assert.match(refusal.message, new RegExp(feature))
      })
    }

    it('without any feature still takes members that ask for none of them', async () => {
      const nothing = {
        stream: false,
        tools: [],
        response_format: { type: 'text' },
        reasoning_effort: 'none',
      }
      assert.equal((await gateway.post(CHAT, chatBody({ model: 'plain', ...nothing }))).status, 200)
    })

    describe('and its context window', () => {
      /** The estimate is the words, 4 for the message and 3 for the request. */
      const asking = (model: string, tokens: number, max_tokens: number) =>
        chatBody({ model, max_tokens, messages: [{ role: 'user', content: words(tokens) }] })

      it('refuses only what is surely too long: 0.85 × the estimate plus the output asked for', async () => {
        // 0.85 × (73 + 7) = 68 of a window of 100 leaves 32 for the answer.
        assert.equal((await gateway.post(CHAT, asking('chat', 73, 32))).status, 200)
        const refusal = await ask(CHAT, asking('chat', 73, 33))
        assert.deepEqual([refusal.status, refusal.code, refusal.param], [400, 'context_too_long', undefined])
      })

      it('passes what fits one of several lines, and refuses what fits none', async () => {
        assert.equal((await gateway.post(CHAT, asking('window', 93, 10))).status, 200)
        assert.equal(upstream.requests.at(-1)?.json.model, 'a')
        assert.equal((await gateway.post(CHAT, asking('window', 93, 900))).status, 200)
        assert.equal(upstream.requests.at(-1)?.json.model, 'b')
        assert.equal((await gateway.post(CHAT, asking('window', 93, 4915))).status, 200)
        assert.equal(upstream.requests.at(-1)?.json.model, 'c')
        assert.equal((await ask(CHAT, asking('window', 93, 4916))).code, 'context_too_long')
      })

      it('passes anything while one of the lines is not restricted', async () => {
        assert.equal((await gateway.post(CHAT, asking('vast', 93, 1_000_000))).status, 200)
      })

      it("is the model's own where no line serves it", async () => {
        assert.equal((await ask(CHAT, asking('unserved', 93, 1), 'sk-all')).code, 'context_too_long')
        assert.equal((await ask(CHAT, asking('unserved', 3, 1), 'sk-all')).code, 'no_candidate')
      })
    })
  })
})

describe('a model of another kind', async () => {
  const SERVED_AT: Readonly<Record<ModelKind, string>> = {
    chat: 'POST /v1/chat/completions',
    embedding: 'POST /v1/embeddings',
    image: 'POST /v1/images/generations',
    rerank: 'POST /v1/rerank',
    video: 'POST /v1/videos',
  }
  const KINDS = Object.keys(SERVED_AT) as ModelKind[]

  /** A body that is right for the endpoint that serves a kind. */
  const OWN_BODY: Readonly<Record<ModelKind, object>> = {
    chat: { messages: [{ role: 'user', content: 'hi' }], stream: true },
    embedding: { input: ['some', 'words'] },
    image: { prompt: 'a cat', n: 2 },
    rerank: { query: 'which?', documents: ['this', 'that'] },
    video: { prompt: 'a cat that runs', seconds: '4' },
  }

  const { upstream, gateway } = await suiteGateway((url) => ({
    lines: [{ url, models: Object.fromEntries(KINDS.map((kind) => [`${kind}-1`, 'upstream'])) }],
    config: { models: KINDS.map((kind) => ({ id: `${kind}-1`, kind })) },
  }))

  it('is tried at every endpoint', () => {
    const tried = new Set(ENDPOINTS.map(({ path }) => path))
    assert.deepEqual(
      OPERATIONS.filter(({ path }) => !tried.has(path)),
      [],
    )
  })

  for (const { path, kind: served, protocol, request } of ENDPOINTS) {
    for (const kind of KINDS) {
      if (kind === served) continue
      const bodies = {
        'the body of the endpoint': JSON.parse(request(`${kind}-1`).body) as object,
        'the body of its own': { model: `${kind}-1`, ...OWN_BODY[kind] },
        'no further member': { model: `${kind}-1` },
      }
      for (const [which, body] of Object.entries(bodies)) {
        it(`${kind} at ${path} with ${which}: the hint ${SERVED_AT[kind]}`, async () => {
          const refusal = await refusalOf(await gateway.post(path, body))
          assert.equal(refusal.status, 400)
          assert.ok(refusal.message.includes(SERVED_AT[kind]), refusal.message)
          if (protocol === 'openai')
            assert.deepEqual([refusal.code, refusal.param], ['invalid_request', 'model'])
          else assert.equal(refusal.type, 'invalid_request_error')
          assert.equal(upstream.requests.length, 0)
        })
      }
    }
  }

  it('is noted in the call log', async () => {
    const response = await gateway.post('/v1/rerank', { model: 'image-1', prompt: 'a cat' })
    const entry = await gateway.entry(response.headers.get('x-request-id'))
    assert.deepEqual([entry.model, entry.error_code, entry.usage], ['image-1', 'invalid_request', null])
  })
})
