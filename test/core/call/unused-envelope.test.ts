import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Express } from 'express'
import { callOf } from '../../../lib/core/call/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'

const refused = (app: Express) =>
  app.get('/refused', (req) => {
    throw callOf(req).refuse('no_candidate')
  })

/** Asks a new app for `/refused` so often, and returns the warnings that it logged. */
async function warnings(
  t: { after(fn: () => Promise<void>): void },
  mount: (app: Express) => void,
  times = 1,
) {
  const logger = recordingLogger()
  let ended = 0
  const app = await serveApp((app) => {
    app.use(beginCall({ logger, onBegin: (call) => call.onEnd('count', () => void ended++) }))
    mount(app)
  })
  t.after(app.close)
  for (let i = 0; i < times; i++) assert.equal((await fetch(`${app.url}/refused`)).status, 503)
  await until(() => ended === times)
  return logger.lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields.path)
}

describe('an errorEnvelope that is mounted before the route that refuses a call', () => {
  it('is logged once', async (t) => {
    const tooEarly = (app: Express) => void refused(app.use(errorEnvelope()))
    assert.deepEqual(await warnings(t, tooEarly, 2), ['/refused'])
  })

  it('is not logged if it is mounted after the route', async (t) => {
    const inOrder = (app: Express) => void refused(app).use(errorEnvelope())
    assert.deepEqual(await warnings(t, inOrder), [])
  })

  it('is not logged if the app answers its errors itself', async (t) => {
    const own = (app: Express) => {
      app.use(errorEnvelope())
      refused(app).use(
        (_error: unknown, _req: unknown, res: { sendStatus(status: number): void }, _next: unknown) =>
          res.sendStatus(503),
      )
    }
    assert.deepEqual(await warnings(t, own), [])
  })
})
