import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import { gatewayFor, readExchange } from '../../support/exchange.ts'
import { chatBody, messageBody } from '../../support/gateway.ts'
import {
  answerJson,
  chatAnswer,
  messageAnswer,
  type ReceivedRequest,
  startUpstream,
  type UpstreamScript,
} from '../../support/scripted-upstream.ts'

describe('the endpoints of a line', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream()
  cleanUp.after(() => upstream.close())
  beforeEach(() => {
    upstream.requests.length = 0
    upstream.script = byPath
  })

  /** Answers each endpoint in its own words. */
  const byPath: UpstreamScript = (res, { path }) => {
    if (path === '/v1/chat/completions') return chatAnswer(res)
    if (path === '/v1/messages') return messageAnswer(res)
    if (path === '/v1/responses') return answerJson(res, 200, RESPONSE)
    answerJson(res, 200, { object: 'list', data: [{ embedding: [1] }], usage: { prompt_tokens: 1 } })
  }
  const RESPONSE = {
    id: 'resp_1',
    object: 'response',
    status: 'completed',
    output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hello' }] }],
    usage: { input_tokens: 7, output_tokens: 3 },
  }
  const RESPONSE_BODY = { model: 'chat', input: 'hi' }
  const EMBEDDING = [{ id: 'vectors', kind: 'embedding' }]
  const line = (extra: object = {}) => ({ url: upstream.url, ...extra })
  const paths = (requests: readonly ReceivedRequest[]) => requests.map(({ path }) => path)

  describe('a line that lists its endpoints', () => {
    const SERVED = [
      ['as it is', '/v1/responses', RESPONSE_BODY, ['responses', 'chat/completions'], '/v1/responses'],
      ['in another', '/v1/responses', RESPONSE_BODY, ['chat/completions'], '/v1/chat/completions'],
      ['in another protocol', '/v1/messages', messageBody(), ['chat/completions'], '/v1/chat/completions'],
    ] as const
    for (const [how, path, body, endpoints, asked] of SERVED) {
      it(`serves ${path} ${how}`, async (t) => {
        const gateway = await gatewayFor(t, { lines: [line({ endpoints })] })
        const got = await readExchange(await gateway.post(path, body))
        assert.equal(got.status, 200)
        assert.match(got.text, /Hello/)
        assert.deepEqual(paths(upstream.requests), [asked])
        const { routing, path: called } = await gateway.entry(got.requestId)
        assert.deepEqual([called, routing?.attempts[0]?.protocol], [path, 'openai'])
      })
    }

    const REMOVED = [
      ['/v1/responses', RESPONSE_BODY, 'openai', ['embeddings'], 'has no responses, no chat/completions'],
      ['/v1/chat/completions', chatBody(), 'openai', ['responses'], 'has no chat/completions'],
      [
        '/v1/completions',
        { model: 'chat', prompt: 'hi' },
        'openai',
        ['chat/completions'],
        'has no completions',
      ],
      [
        '/v1/messages',
        messageBody(),
        'openai',
        ['responses'],
        'line uses openai, the call anthropic; has no chat/completions',
      ],
      [
        '/v1/responses',
        RESPONSE_BODY,
        'anthropic',
        ['messages/count_tokens'],
        'line uses anthropic, the call openai; has no messages',
      ],
    ] as const
    for (const [path, body, protocol, endpoints, detail] of REMOVED) {
      it(`is removed from ${path} where it can serve it neither way (${endpoints})`, async (t) => {
        const gateway = await gatewayFor(t, { lines: [line({ protocol, endpoints })] })
        const got = await readExchange(await gateway.post(path, body))
        assert.equal(got.status, 503)
        const { routing, error_code } = await gateway.entry(got.requestId)
        assert.equal(error_code, 'no_candidate')
        assert.deepEqual(routing?.eliminated, [{ line: 'line-0', reason: 'protocol', detail }])
        assert.equal(upstream.requests.length, 0)
      })
    }

    it('leaves embeddings to the lines that have them', async (t) => {
      const models = { vectors: 'upstream-vectors' }
      const gateway = await gatewayFor(t, {
        lines: [
          line({ models, endpoints: ['chat/completions'] }),
          line({ models, endpoints: ['embeddings'] }),
        ],
        config: { models: EMBEDDING },
      })
      const got = await readExchange(await gateway.post('/v1/embeddings', { model: 'vectors', input: 'hi' }))
      assert.equal(got.status, 200)
      const { routing } = await gateway.entry(got.requestId)
      assert.deepEqual(routing?.eliminated, [
        { line: 'line-0', reason: 'protocol', detail: 'has no embeddings' },
      ])
      assert.deepEqual(
        routing?.attempts.map((attempt) => attempt.line),
        ['line-1'],
      )
    })

    it('is tried after a line that has the endpoint, at equal priority', async (t) => {
      const lines = [
        line({ id: 'chat-only', endpoints: ['chat/completions'], priority: 0, weight: 9 }),
        line({ id: 'messages', protocol: 'anthropic', priority: 0, weight: 8 }),
        line({ id: 'native', priority: 0 }),
      ]
      const gateway = await gatewayFor(t, { lines })
      upstream.script = (res) => answerJson(res, 503, {})
      const got = await readExchange(await gateway.post('/v1/responses', RESPONSE_BODY))
      const { routing } = await gateway.entry(got.requestId)
      assert.deepEqual(
        routing?.attempts.map((attempt) => attempt.line),
        ['native', 'chat-only', 'messages'],
      )
    })

    it('replaces a line that has the endpoint after a failure, and is replaced by one', async (t) => {
      upstream.script = (res, request, index) =>
        request.path === '/v1/responses' ? answerJson(res, 503, {}) : byPath(res, request, index)
      const lines = [line(), line({ endpoints: ['chat/completions'] })]
      const first = await gatewayFor(t, { lines })
      assert.match(await (await first.post('/v1/responses', RESPONSE_BODY)).text(), /Hello/)
      upstream.script = (res, request, index) =>
        request.path === '/v1/chat/completions' ? answerJson(res, 503, {}) : byPath(res, request, index)
      const second = await gatewayFor(t, { lines: lines.toReversed() })
      assert.match(await (await second.post('/v1/responses', RESPONSE_BODY)).text(), /Hello/)
      assert.deepEqual(paths(upstream.requests), [
        '/v1/responses',
        '/v1/chat/completions',
        '/v1/chat/completions',
        '/v1/responses',
      ])
    })
  })

  describe('a 404 of a line that does not list its endpoints', () => {
    const HINT = '(the line has no such endpoint? list its "endpoints")'
    const UNKNOWN = { error: { message: 'Unknown request URL: POST /v1/responses', code: 'unknown_url' } }
    const NO_MODEL = {
      error: { message: 'The model upstream-chat-0 does not exist', code: 'model_not_found' },
    }
    const ROWS = [
      ['is reported with a possible cause', {}, UNKNOWN, true],
      ['is reported unchanged if it names a model', {}, NO_MODEL, false],
      ['is reported unchanged if the line lists them', { endpoints: ['responses'] }, UNKNOWN, false],
    ] as const
    for (const [name, extra, error, hinted] of ROWS) {
      it(name, async (t) => {
        upstream.script = (res, request, index) =>
          index === 0 ? answerJson(res, 404, error) : byPath(res, request, index)
        const gateway = await gatewayFor(t, { lines: [line(extra), line()] })
        const got = await readExchange(await gateway.post('/v1/responses', RESPONSE_BODY))
        assert.equal(got.status, 200)
        const [attempt] = (await gateway.entry(got.requestId)).routing?.attempts ?? []
        assert.equal(attempt?.outcome, 'upstream_error')
        assert.equal(attempt?.detail?.endsWith(HINT), hinted, String(attempt?.detail))
      })
    }
  })

  describe('stored responses of lines that list their endpoints', () => {
    it('are not found if the request was translated to a chat', async (t) => {
      const gateway = await gatewayFor(t, { lines: [line({ endpoints: ['chat/completions'] })] })
      const got = await gateway.post('/v1/responses', RESPONSE_BODY)
      const { id, store } = (await got.json()) as { id: string; store: boolean }
      assert.equal(store, false)
      for (const method of ['GET', 'DELETE']) {
        const response = await gateway.post(`/v1/responses/${id}`, undefined, { method, body: null })
        assert.equal(response.status, 404)
        assert.equal((await readExchange(response)).errorCode, 'not_found')
      }
      const next = await gateway.post('/v1/responses', { ...RESPONSE_BODY, previous_response_id: id })
      assert.equal((await readExchange(next)).errorCode, 'not_found')
      assert.deepEqual(paths(upstream.requests), ['/v1/chat/completions'])
    })

    it('are still requested from the line that made them', async (t) => {
      const lines = [line({ endpoints: ['chat/completions'] }), line({ endpoints: ['responses'] })]
      const gateway = await gatewayFor(t, { lines, route: { strategy: (all) => all.toReversed() } })
      upstream.script = (res) => answerJson(res, 200, RESPONSE)
      await (await gateway.post('/v1/responses', RESPONSE_BODY)).text()
      const again = await gateway.post('/v1/responses/resp_1', undefined, { method: 'GET', body: null })
      assert.equal(again.status, 200)
      const next = { ...RESPONSE_BODY, previous_response_id: 'resp_1' }
      assert.equal((await gateway.post('/v1/responses', next)).status, 200)
      assert.deepEqual(
        upstream.requests.map(({ method, path, headers }) => [method, path, headers.authorization]),
        [
          ['POST', '/v1/responses', 'Bearer upstream-key-1'],
          ['GET', '/v1/responses/resp_1', 'Bearer upstream-key-1'],
          ['POST', '/v1/responses', 'Bearer upstream-key-1'],
        ],
      )
    })
  })
})
