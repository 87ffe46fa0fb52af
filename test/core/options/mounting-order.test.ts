import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import express, { type Express } from 'express'
// @ts-expect-error: its types are those of Express 5, near enough for this.
import express4 from 'express-4'
import { beginCall, callOf, errorEnvelope, rateLimit, unknownPath } from '../../../lib/index.ts'
import { type RecordingLogger, recordingLogger, serveApp } from '../../support/app-server.ts'

const EARLY = /^errorEnvelope: .*mount it after all routes$/
const LATE = /^beginCall: .*mount beginCall first$/

/** A middleware that refuses the second request. */
const limit = () => rateLimit({ levels: [{ name: 'all', by: () => 'all', rpm: 1 }] })
const answer: express.RequestHandler = (_req, res) => void res.json({})

/** Serves an app, sends requests to `path`, and returns the statuses and the lines that were logged. */
async function told(
  t: TestContext,
  build: (app: Express, logger: RecordingLogger) => void,
  path = '/v1/x',
  requests = 3,
): Promise<{ statuses: number[]; lines: string[] }> {
  const logger = recordingLogger()
  const app = await serveApp((app) => build(app, logger))
  t.after(app.close)
  const statuses: number[] = []
  for (let i = 0; i < requests; i++) {
    const res = await fetch(app.url + path)
    await res.text()
    statuses.push(res.status)
  }
  return { statuses, lines: logger.lines.map(({ message }) => message) }
}

describe('errorEnvelope that is mounted before the route', () => {
  const EARLIER: readonly [what: string, build: (app: Express, logger: RecordingLogger) => void][] = [
    [
      'in the app',
      (app, logger) => {
        app.use(beginCall({ logger }), errorEnvelope())
        app.get('/v1/x', limit(), answer)
      },
    ],
    [
      'in a router',
      (app, logger) => {
        const router = express.Router()
        router.use(errorEnvelope())
        router.get('/x', limit(), answer)
        app.use(beginCall({ logger }))
        app.use('/v1', router)
      },
    ],
    [
      'in the app, before a router',
      (app, logger) => {
        const router = express.Router()
        router.get('/x', limit(), answer)
        app.use(beginCall({ logger }), unknown(), errorEnvelope())
        app.use('/v1', router)
      },
    ],
  ]
  for (const [what, build] of EARLIER)
    it(`is logged once: ${what}`, async (t) => {
      const { statuses, lines } = await told(t, build)
      assert.deepEqual(statuses, [200, 429, 429])
      assert.equal(lines.length, 1, String(lines))
      assert.match(lines[0] ?? '', EARLY)
    })

  it('is logged on Express 4, too', async (t) => {
    const logger = recordingLogger()
    const app = express4()
    app.set('env', 'test')
    app.use(beginCall({ logger }), errorEnvelope())
    app.get('/v1/x', limit(), answer)
    const server: Server = app.listen(0, '127.0.0.1')
    t.after(() => server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    for (let i = 0; i < 3; i++) {
      const res = await fetch(`http://127.0.0.1:${port}/v1/x`, { signal: AbortSignal.timeout(10_000) })
      await res.text()
    }
    const lines = logger.lines.map(({ message }) => message)
    assert.equal(lines.length, 1)
    assert.match(lines[0] ?? '', EARLY)
  })

  const RIGHT: readonly [what: string, build: (app: Express, logger: RecordingLogger) => void][] = [
    [
      'at the end',
      (app, logger) => {
        app.use(beginCall({ logger }))
        app.get('/v1/x', limit(), answer)
        app.use(unknownPath(), errorEnvelope())
      },
    ],
    [
      'nowhere, so that Express answers',
      (app, logger) => {
        app.use(beginCall({ logger }))
        app.get('/v1/x', limit(), answer)
      },
    ],
    [
      'before routes whose errors the app answers itself',
      (app, logger) => {
        app.use(beginCall({ logger }))
        app.use(errorEnvelope())
        app.get('/v1/x', limit(), answer)
        app.use(
          ((_error, _req, res, _next) =>
            void res.status(429).json({ own: true })) as express.ErrorRequestHandler,
        )
      },
    ],
  ]
  for (const [what, build] of RIGHT)
    it(`is not logged if it is mounted correctly: ${what}`, async (t) => {
      const { statuses, lines } = await told(t, build)
      assert.deepEqual(statuses, [200, 429, 429])
      assert.deepEqual(lines, [])
    })
})

describe('beginCall that is not the first', () => {
  it('is logged once if its options came too late', async (t) => {
    const { lines } = await told(t, (app, logger) => {
      app.use((req, _res, next) => {
        callOf(req)
        next()
      })
      app.use(beginCall({ logger }))
      app.get('/v1/x', answer)
    })
    assert.equal(lines.length, 1)
    assert.match(lines[0] ?? '', LATE)
  })

  it('is not logged if nothing is lost', async (t) => {
    const warned = t.mock.method(console, 'warn', () => {})
    const { lines } = await told(t, (app, logger) => {
      app.use(beginCall({ logger }), beginCall({ onBegin: () => {} }), limit(), beginCall({ logger }))
      app.get('/v1/x', answer)
      app.use(errorEnvelope())
    })
    assert.deepEqual(lines, [])
    const alone = await told(t, (app) => {
      app.use(limit(), beginCall())
      app.get('/v1/x', answer)
      app.use(errorEnvelope())
    })
    assert.deepEqual(alone.lines, [])
    assert.deepEqual(warned.mock.calls, [])
  })
})

function unknown(): express.RequestHandler {
  return (_req, _res, next) => next()
}
