import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import compression from 'compression'
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express'
import session from 'express-session'
import {
  errorEnvelope,
  GatewayError,
  guard,
  idempotency,
  type LimitStore,
  rateLimit,
} from '../../../lib/index.ts'
import { patterns } from '../../../lib/middleware/guard/index.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'
import type { CleanUp } from '../../support/clean-up.ts'

const output = patterns({ refuse: [/secret/] })

/** Error handlers, as apps have them. */
const HANDLERS: readonly (readonly [string, ErrorRequestHandler])[] = [
  ['errorEnvelope', errorEnvelope({ logger: recordingLogger() })],
  ['a handler that answers at once', (error, _req, res, _next) => answerWith(error, res)],
  [
    'a handler that writes the error down first',
    async (error, _req, res, _next) => {
      await wait(5)
      answerWith(error, res)
    },
  ],
  [
    'a handler whose answer has parts',
    async (error, _req, res, _next) => {
      await wait(5)
      res.status(error.status ?? 500).type('json')
      res.write('{"error":')
      await wait(5)
      res.end('{}}')
    },
  ],
]

function answerWith(error: { status?: number; headers?: object }, res: express.Response): void {
  res
    .status(error.status ?? 500)
    .set(error.headers ?? {})
    .json({ error: {} })
}

/** Middlewares between the guard and the handler, and the status of a refused answer. */
const BETWEEN: readonly (readonly [string, number, () => RequestHandler])[] = [
  ['nothing', 400, () => (_req, _res, next) => next()],
  ['express-session', 400, () => session({ secret: 's', resave: true, saveUninitialized: true })],
  // A compressed answer cannot be checked: a mistake of the app.
  ['compression', 500, () => compression({ threshold: 0 })],
]

async function serve(t: CleanUp, build: (app: Express) => void): Promise<string> {
  const served = await serveApp(build)
  t.after(() => served.close())
  return served.url
}

describe('an answer that a guard refuses', { concurrency: true }, () => {
  for (const [handler, onError] of HANDLERS)
    for (const [between, status, middleware] of BETWEEN)
      it(`is replaced by that of ${handler}, with ${between} behind the guard`, async (t) => {
        const url = await serve(t, (app) => {
          app.use(guard({ output }), middleware())
          app.get('/plain', (_req, res) => void res.json({ text: 'a secret' }))
          app.get('/stream', (_req, res) => {
            res.type('text/event-stream').write('data: {"text":"a secret"}\n\n')
            res.end()
          })
          app.get('/slow', async (_req, res) => {
            res.type('text/event-stream').write('data: {"text":"a secret"}\n\n')
            await wait(10)
            res.write('data: {"text":"more"}\n\n')
            res.end()
          })
          app.use(onError)
        })
        for (const path of ['/plain', '/stream', '/slow']) {
          const answer = await fetch(url + path, { signal: AbortSignal.timeout(10_000) })
          const text = await answer.text()
          assert.equal(answer.status, status, path)
          assert.equal(answer.headers.get('content-encoding'), null, path)
          assert.doesNotMatch(text, /secret|more/, path)
          assert.ok('error' in JSON.parse(text), path)
        }
      })
})

/** A store whose slots are free for others a moment after they are given back. */
const slots: LimitStore = {
  admit: ({ charges }) => ({
    refusedBy: undefined,
    waitMs: 0,
    counts: charges.map(() => ({ used: 1, resetMs: 1 })),
  }),
  hold() {},
  release: () => wait(5),
}

describe('an error behind a guard, whose end waits', () => {
  for (const [what, middleware] of [
    ['for its Idempotency-Key', () => idempotency({ by: () => 'me' })],
    [
      'for its slot',
      () => rateLimit({ levels: [{ name: 'ip', by: ({ ip }) => ip, concurrency: 1 }], store: slots }),
    ],
  ] as const satisfies readonly (readonly [string, () => RequestHandler])[])
    it(`${what} has its status and headers`, async (t) => {
      const url = await serve(t, (app) => {
        app.use(guard({ output }), express.json(), middleware())
        app.post('/', () => {
          throw new GatewayError('no_candidate')
        })
        app.use(errorEnvelope({ logger: recordingLogger() }))
      })
      // Twice over one connection, on which the second answer begins where the first one ends.
      for (const key of ['one', 'two']) {
        const headers = { 'content-type': 'application/json', 'idempotency-key': key }
        const answer = await fetch(url, { method: 'POST', headers, body: '{}' })
        assert.equal(answer.status, 503)
        assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8')
        const { error } = (await answer.json()) as { error: { code: string } }
        assert.equal(error.code, 'no_candidate')
      }
    })
})

describe('an answer that a guard lets pass', () => {
  const LATIN = Buffer.from('caf\xe9 \xfc', 'latin1')
  const UTF_16 = Buffer.from('\ufeffcafé', 'utf16le')
  for (const [is, type, bytes] of [
    ['in a charset of its own', 'text/plain; charset=iso-8859-1', LATIN],
    ['in UTF-16', 'text/html; charset="utf-16le"', UTF_16],
    ['in an unknown charset', 'text/plain; charset=nonsense', LATIN],
    ['not what its type says', 'application/json', LATIN],
    ['of no type', undefined, Buffer.from([0xff, 0xd8, 0, 1])],
    ['with a byte order mark', 'application/json', Buffer.from('\ufeff{}')],
  ] as const)
    it(`arrives byte for byte: ${is}`, async (t) => {
      const url = await serve(t, (app) => {
        app.use(guard({ output: () => 'allow' }))
        app.get('/', (_req, res) => {
          if (type) res.setHeader('content-type', type)
          res.end(bytes)
        })
      })
      const answer = await fetch(url)
      assert.deepEqual(Buffer.from(await answer.arrayBuffer()), bytes)
      assert.equal(answer.headers.get('content-type'), type ?? null)
    })

  it('is read in its charset, and sent in UTF-8 where a part is replaced', async (t) => {
    const url = await serve(t, (app) => {
      app.use(guard({ output: patterns({ mask: [/é\d+/], refuse: [/verböten/] }) }))
      app.get('/mask', (_req, res) => {
        res.setHeader('content-type', 'text/plain; charset=iso-8859-1')
        res.end(Buffer.from('caf\xe9123 \xfc', 'latin1'))
      })
      app.get('/refuse', (_req, res) => {
        res.setHeader('content-type', 'text/plain; charset=iso-8859-1')
        res.end(Buffer.from('verb\xf6ten', 'latin1'))
      })
      app.use(errorEnvelope({ logger: recordingLogger() }))
    })
    const masked = await fetch(`${url}/mask`)
    assert.match(await masked.text(), /^caf\S+ ü$/)
    assert.equal(masked.headers.get('content-type'), 'text/plain; charset=utf-8')
    assert.equal((await fetch(`${url}/refuse`)).status, 400)
  })

  it('is no part of a text: that could hide what the whole has', async (t) => {
    const url = await serve(t, (app) => {
      app.use(guard({ output }))
      app.get('/', (_req, res) => {
        res.status(206).type('text').set('content-range', 'bytes 0-2/100').end('a s')
      })
      app.use(errorEnvelope({ logger: recordingLogger() }))
    })
    const answer = await fetch(url)
    assert.deepEqual([answer.status, answer.headers.get('content-range')], [500, null])
  })
})
