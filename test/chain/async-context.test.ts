import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { connect } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import express, { type ErrorRequestHandler, type RequestHandler } from 'express'
import { callOf } from '../../lib/core/call/index.ts'
import {
  authenticate,
  beginCall,
  billingGuard,
  CallLogWriter,
  callLog,
  errorEnvelope,
  idempotency,
  LeasePool,
  LineRegistry,
  loadConfig,
  MemoryCallStore,
  MemoryLedger,
  memoryKeyDirectory,
  rateLimit,
  readRequest,
  references,
  route,
  telemetry,
} from '../../lib/index.ts'
import { MemoryIdempotencyStore } from '../../lib/middleware/idempotency/index.ts'
import { MemoryLimitStore } from '../../lib/middleware/rate-limit/index.ts'
import { UpstreamResources } from '../../lib/middleware/references/index.ts'
import { serveApp } from '../support/app-server.ts'
import { catalog } from '../support/one-line-catalog.ts'
import { answerJson, startUpstream } from '../support/scripted-upstream.ts'

const context = new AsyncLocalStorage<string>()
const directory = memoryKeyDirectory({
  accounts: [{ id: 'acme' }],
  keys: [{ id: 'k1', account: 'acme', secret: 'sk-1' }],
})
const chat = (text: string) => JSON.stringify({ model: 'chat', messages: [{ role: 'user', content: text }] })
const levels = [{ name: 'all', by: () => 'all', rpm: 1000, concurrency: 1000 }]

/** A store whose answers come later, from another turn of the event loop. */
function late<S extends object>(store: S): S {
  return new Proxy(store, {
    get(target, name) {
      const member = Reflect.get(target, name) as unknown
      if (typeof member !== 'function') return member
      return (...given: unknown[]) =>
        sleep(2).then(() => (member as (...all: unknown[]) => unknown).apply(target, given))
    },
  })
}

const pool = (ledger: MemoryLedger) => new LeasePool({ ledger: late(ledger) })
const json = express.json()

/** Every middleware that hands a request on, each way in which it can come to wait. */
const MIDDLEWARES: Record<string, { handlers: RequestHandler[]; body?: string; slowly?: boolean }> = {
  beginCall: { handlers: [beginCall()] },
  telemetry: { handlers: [telemetry({ catalog })] },
  callLog: { handlers: [callLog({ writer: new CallLogWriter({ store: new MemoryCallStore() }) })] },
  authenticate: { handlers: [authenticate({ keys: directory })] },
  'authenticate, a late directory': { handlers: [authenticate({ keys: late(directory) })] },
  'authenticate, a late directory without a cache': {
    handlers: [authenticate({ keys: late(directory), cacheKeysMs: 0 })],
  },
  'readRequest, a small body': { handlers: [readRequest({ catalog })], body: chat('hi') },
  'readRequest, a body in pieces': { handlers: [readRequest({ catalog })], body: chat('hi'), slowly: true },
  'readRequest, a large body': { handlers: [readRequest({ catalog })], body: chat('x'.repeat(900_000)) },
  'readRequest, asking others first': {
    handlers: [readRequest({ catalog, before: [rateLimit({ levels })] })],
    body: chat('x'.repeat(90_000)),
  },
  'readRequest, behind another parser': { handlers: [json, readRequest({ catalog })], body: chat('hi') },
  idempotency: { handlers: [idempotency()] },
  'idempotency, a late store': { handlers: [idempotency({ store: late(new MemoryIdempotencyStore()) })] },
  references: {
    handlers: [readRequest({ catalog }), references({ resources: new UpstreamResources() })],
    body: chat('hi'),
  },
  rateLimit: { handlers: [rateLimit({ levels })] },
  'rateLimit, a late store': { handlers: [rateLimit({ levels, store: late(new MemoryLimitStore()) })] },
  'rateLimit, late functions': {
    handlers: [rateLimit({ levels: [{ name: 'all', by: () => sleep(2, 'all'), rpm: 1000 }] })],
  },
  billingGuard: { handlers: [billingGuard({ account: () => 'acme', reserve: () => '0.01' })] },
  'billingGuard, a late ledger': {
    handlers: [
      billingGuard({
        pool: pool(new MemoryLedger({ unknownAccounts: 'postpaid' })),
        account: () => 'acme',
        reserve: () => '0.01',
      }),
    ],
  },
}

async function serve(t: TestContext, handlers: readonly RequestHandler[], end: RequestHandler) {
  let id = 0
  const failed: ErrorRequestHandler = (error: Error, _req, res, next) => {
    res.setHeader('x-context', context.getStore() ?? 'lost')
    next(error)
  }
  const enter: RequestHandler = (_req, _res, next) => context.run(`context ${++id}`, next)
  const app = await serveApp((app) => {
    // The first parser of a body must not be the one that loses the context.
    app.post('/v1/chat/completions', enter, ...handlers, end)
    app.use(failed, errorEnvelope())
  })
  t.after(app.close)
  return app
}

/** Sends a body in two pieces, and returns the answer's body. */
async function send(port: number, body: string, slowly: boolean): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-1\r\nidempotency-key: ${Math.random()}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n`
  const half = slowly ? 5 : 0
  socket.write(head + body.slice(0, half))
  if (slowly) await sleep(20)
  socket.write(body.slice(half))
  let received = ''
  for await (const chunk of socket) received += String(chunk)
  return received
}

describe('AsyncLocalStorage is preserved', () => {
  for (const [name, { handlers, body = '', slowly = false }] of Object.entries(MIDDLEWARES)) {
    it(`through ${name}`, async (t) => {
      const app = await serve(t, handlers, (req, res) => {
        res.json({ context: context.getStore() ?? 'lost', call: callOf(req).id })
      })
      const answers = await Promise.all([1, 2, 3].map(() => send(app.port, body, slowly)))
      for (const answer of answers) assert.match(answer, /^HTTP\/1.1 200 /)
      const found = answers.map((answer) => /"context":"([^"]*)"/.exec(answer)?.[1])
      assert.deepEqual(found.sort(), ['context 1', 'context 2', 'context 3'])
    })

    it(`for later work of the handler behind ${name}`, async (t) => {
      const app = await serve(t, handlers, (_req, res) => {
        void sleep(2).then(() => res.json({ context: context.getStore() ?? 'lost' }))
      })
      assert.match(await send(app.port, body, slowly), /"context":"context 1"/)
    })
  }

  it('for the error handler of a late refusal', async (t) => {
    const cases: RequestHandler[] = [
      authenticate({ keys: late(memoryKeyDirectory({ accounts: [], keys: [] })) }),
      rateLimit({ levels: [{ name: 'all', by: () => 'all', rpm: 0 }], store: late(new MemoryLimitStore()) }),
      readRequest({ catalog }),
    ]
    for (const handler of cases) {
      const app = await serve(t, [handler], (_req, res) => void res.end())
      assert.match(await send(app.port, '{"model": 7}', true), /x-context: context 1/, handler.name)
    }
  })

  it('for code after the answers of lines, over connections that an earlier call opened', async (t) => {
    const [failing, answering] = [
      await startUpstream((res) => answerJson(res, 500, {})),
      await startUpstream(),
    ]
    t.after(() => Promise.all([failing.close(), answering.close()]))
    const { catalog } = loadConfig({
      models: [{ id: 'chat', kind: 'chat' }],
      lines: [failing, answering].map(({ url }, i) => ({
        id: `line-${i}`,
        provider: `provider-${i}`,
        protocol: 'openai',
        baseUrl: `${url}/v1`,
        priority: i,
        models: { chat: 'upstream-chat' },
      })),
    })
    const lines = new LineRegistry()
    t.after(() => lines.close())
    const seen: string[] = []
    const look: RequestHandler = (req, _res, next) => {
      const note = (what: string) => void seen.push(`${what} in ${context.getStore() ?? 'none'}`)
      callOf(req).onAssertOwnsClaim(() => note('proved'))
      callOf(req).onSettle(() => note('settled'))
      next()
    }
    const app = await serve(t, [readRequest({ catalog }), look], route({ catalog, lines }))
    for (const name of ['context 1', 'context 2']) {
      assert.match(await send(app.port, chat('hi'), false), /^HTTP\/1.1 200 /)
      // Before either attempt, and before the last byte.
      const what = ['proved', 'proved', 'settled', 'proved']
      assert.deepEqual(
        seen.splice(0),
        what.map((each) => `${each} in ${name}`),
      )
    }
    answering.script = failing.script
    assert.match(await send(app.port, chat('hi'), false), /x-context: context 3/)
  })
})
