import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { callOf, type EarlyRefuser, type OpenCall } from '../../../lib/core/call/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { chatCompletions } from '../../../lib/core/operations/index.ts'
import { MAX_BYTES_AT_ONCE } from '../../../lib/core/timing/index.ts'
import { errorEnvelope, loadConfig, type ReadRequestOptions, readRequest } from '../../../lib/index.ts'
import { envelopeIn } from '../../support/answer-bodies.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'
import { catalog } from '../../support/one-line-catalog.ts'
import { until } from '../../support/until.ts'
import { refusalOf } from './refusal.ts'

/** An app that reads requests at paths of its own; what it read is in `read`, what it began in `calls`. */
async function reading(t: TestContext, options: Partial<ReadRequestOptions>) {
  const read: OpenCall[] = []
  const calls: OpenCall[] = []
  const logger = recordingLogger()
  const app = await serveApp((app) =>
    app
      .use((req, _res, next) => {
        calls.push(callOf(req))
        next()
      })
      .post(
        ['/v1/chat/completions', '/ai', '/deployments/:name'],
        readRequest({ catalog, ...options }),
        (req, res) => {
          read.push(callOf(req))
          res.json(callOf(req).request?.body.json)
        },
      )
      .use(errorEnvelope({ logger })),
  )
  t.after(app.close)
  const ask = (
    members: object = {},
    { path = '/v1/chat/completions', headers = {}, ...init }: AskInit = {},
  ) =>
    fetch(app.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ model: 'chat', messages: [{ role: 'user', content: 'hi' }], ...members }),
      ...init,
    })
  return { ask, read, calls, logger }
}
type AskInit = { path?: string; headers?: Record<string, string>; signal?: AbortSignal; body?: string }

/** More than is read without asking. */
const LARGE = { filler: 'x'.repeat(17 * 1024) }
const refuser = (refuseEarly: () => unknown): EarlyRefuser => ({ refuseEarly }) as EarlyRefuser

it('the operation of a path of your own is given, or returned by a function of the request', async (t) => {
  for (const operation of [chatCompletions, () => chatCompletions]) {
    const { ask, read } = await reading(t, { operation })
    assert.equal((await ask({}, { path: '/ai' })).status, 200)
    assert.equal(read[0]?.request?.operation, chatCompletions)
  }
})

it('the model of a path takes the place of the body’s, and is in the call of a body that is refused', async (t) => {
  const { ask, read, calls } = await reading(t, {
    operation: chatCompletions,
    model: (req) => String(req.params.name),
  })
  const answered = await ask({ model: 'other', n: 1 }, { path: '/deployments/chat' })
  assert.equal(answered.status, 200)
  assert.deepEqual(await answered.json(), {
    model: 'chat',
    messages: [{ role: 'user', content: 'hi' }],
    n: 1,
  })
  assert.equal(JSON.parse(String(read[0]?.request?.body.raw)).model, 'chat')
  const long = 'm'.repeat(300)
  const refused = await refusalOf(await ask({ model: 'chat', messages: 7 }, { path: `/deployments/${long}` }))
  assert.equal(refused.code, 'invalid_request')
  assert.equal(calls.at(-1)?.model, 'm'.repeat(200))
  assert.equal((await refusalOf(await ask({}, { path: '/deployments/none' }))).code, 'model_not_found')
  assert.equal(read.length, 1)
})

it('X-Gateway-Unsupported says what happens to members that a line lacks, in any case', async (t) => {
  const { ask, read } = await reading(t, {})
  for (const [given, policy] of [
    ['drop', 'drop'],
    ['refuse', 'refuse'],
    ['Drop', 'drop'],
    [' REFUSE ', 'refuse'],
    [undefined, undefined],
  ] as const) {
    const headers: Record<string, string> = given === undefined ? {} : { 'x-gateway-unsupported': given }
    assert.equal((await ask({}, { headers })).status, 200)
    assert.equal(read.at(-1)?.request?.unsupported, policy, given)
  }
  for (const given of ['', 'keep', 'drop, refuse', 'drops']) {
    const { status, param } = await refusalOf(await ask({}, { headers: { 'x-gateway-unsupported': given } }))
    assert.deepEqual([status, param], [400, 'X-Gateway-Unsupported'], given)
  }
  assert.equal(read.length, 5)
})

it('later middlewares are asked in turn before a large body is read, up to the first that refuses', async (t) => {
  const asked: string[] = []
  const answers: Record<string, unknown> = {}
  const before = ['one', 'two', 'three'].map((name) =>
    refuser(() => {
      asked.push(name)
      return answers[name]
    }),
  )
  const { ask, read } = await reading(t, { before })
  assert.equal((await ask()).status, 200)
  assert.deepEqual(asked, [], 'a small body is read at once')
  for (const [bytes, first] of [
    [16 * 1024, undefined],
    [16 * 1024 + 1, 'one'],
  ] as const) {
    const body = JSON.stringify({ model: 'chat', messages: [{ role: 'user', content: 'hi' }] }).padEnd(bytes)
    assert.equal((await ask({}, { body })).status, 200)
    assert.equal(asked.splice(0)[0], first, `${bytes} bytes`)
  }
  assert.equal((await ask(LARGE)).status, 200)
  assert.deepEqual(asked.splice(0), ['one', 'two', 'three'])
  for (const late of [false, true]) {
    const refusal = new GatewayError('insufficient_balance')
    answers.two = late ? Promise.resolve(refusal) : refusal
    assert.equal((await refusalOf(await ask(LARGE))).code, 'insufficient_balance')
    assert.deepEqual(asked.splice(0), ['one', 'two'])
  }
  assert.equal(read.length, 4)
})

it('a later middleware that answers anything else is a mistake of the app, which its log names', async (t) => {
  for (const [answer, told] of [
    [() => true, /"refuseEarly" must return an error, or undefined/],
    [() => null, /"refuseEarly" must return an error, or undefined/],
    [async () => 'no', /"refuseEarly" must return an error, or undefined/],
    [() => Promise.reject(new Error('away')), /away/],
  ] as const) {
    const { ask, read, logger } = await reading(t, { before: [refuser(answer)] })
    assert.equal((await refusalOf(await ask(LARGE))).code, 'internal_error')
    assert.match(String(logger.lines.map(({ fields }) => (fields as { err: Error }).err)), told)
    assert.equal(read.length, 0)
  }
})

it('an option whose function returns nothing of use is a mistake of the app, which its log names', async (t) => {
  const nothing = () => null as never
  for (const [options, told] of [
    [
      { operation: nothing },
      /"operation" must return an operation, or undefined for that of the path, not null/,
    ],
    [{ model: nothing }, /"model" must return the name of a model, not null/],
    [{ estimateTokens: nothing }, /"estimateTokens" must return a number from 0 up, not null/],
  ] as const) {
    const { ask, read, logger } = await reading(t, options)
    assert.equal((await refusalOf(await ask())).code, 'internal_error')
    assert.match(String(logger.lines.map(({ fields }) => (fields as { err: Error }).err)), told)
    assert.equal(read.length, 0)
  }
})

it('a body is not read whose caller left while later middlewares were asked', async (t) => {
  const aborted = new AbortController()
  let answer = () => {}
  const before = [refuser(() => new Promise<void>((resolve) => (answer = resolve)))]
  const { ask, read, calls } = await reading(t, { before })
  const asked = ask(LARGE, { signal: aborted.signal })
  await until(() => calls.length === 1, 'the call')
  aborted.abort()
  await assert.rejects(asked, { name: 'AbortError' })
  await until(() => calls[0]?.left === true, 'the caller to be gone')
  answer()
  await until(() => calls[0]?.outcome !== undefined, 'the end')
  await sleep(0)
  assert.equal(calls[0]?.outcome?.status, 499)
  assert.equal(read.length, 0)
})

it('a body that its app has parsed is taken without asking, however large it is', async (t) => {
  const app = await serveApp((app) =>
    app
      .use((req, _res, next) => {
        req.body = { model: 'chat', messages: [{ role: 'user', content: 'x'.repeat(40_000) }] }
        next()
      })
      .post('/v1/chat/completions', readRequest({ catalog, before: [refuser(assert.fail)] }), (_req, res) =>
        res.send('read'),
      )
      .use(errorEnvelope()),
  )
  t.after(app.close)
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(`${app.url}/v1/chat/completions`, { method: 'POST', headers })
  assert.equal(await answer.text(), 'read')
})

const { catalog: ownCatalog } = loadConfig({
  models: [{ id: 'm', kind: 'chat' }],
  lines: [
    {
      id: 'l',
      provider: 'p',
      protocol: 'openai',
      baseUrl: 'http://127.0.0.1:9/v1',
      apiKey: 'k',
      models: { m: 'm' },
    },
  ],
})

describe('a route whose path is no endpoint', () => {
  for (const [route, expected, told] of [
    [
      '/ai',
      { status: 500, code: 'internal_error' },
      [/^readRequest: .* give "operation", such as chatCompletions$/],
    ],
    ['/*all', { status: 404, code: 'not_found' }, []],
    ['/:name', { status: 404, code: 'not_found' }, []],
  ] as const)
    it(`${route}: ${told.length > 0 ? 'is a mistake of the app, which its log names' : 'the caller chose the path'}`, async (t) => {
      const logger = recordingLogger()
      const app = await serveApp((app) => {
        app.post(route, readRequest({ catalog: ownCatalog }))
        app.use(errorEnvelope({ logger }))
      })
      t.after(app.close)
      const res = await fetch(`${app.url}/ai`, { method: 'POST', body: '{}' })
      assert.deepEqual({ status: res.status, code: envelopeIn(await res.json()).error.code }, expected)
      const logged = logger.lines.map(({ fields }) => (fields as { err: Error }).err.message)
      assert.equal(logged.length, told.length)
      for (const [i, line] of told.entries()) assert.match(String(logged[i]), line)
    })
})

it('an app without keys reads a large body in its turn, as that of any account', async (t) => {
  const app = await serveApp((app) => {
    app.post('/v1/chat/completions', readRequest({ catalog: ownCatalog }), (_req, res) => res.send('read'))
    app.use(errorEnvelope())
  })
  t.after(app.close)
  const messages = [{ role: 'user', content: 'x'.repeat(MAX_BYTES_AT_ONCE + 1) }]
  const body = JSON.stringify({ model: 'm', messages })
  const headers = { 'content-type': 'application/json' }
  const answer = await fetch(`${app.url}/v1/chat/completions`, { method: 'POST', headers, body })
  assert.deepEqual([answer.status, await answer.text()], [200, 'read'])
})
