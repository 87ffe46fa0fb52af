import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import express, { type RequestHandler } from 'express'
import { callOf } from '../../../lib/core/call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { idempotency } from '../../../lib/middleware/idempotency/index.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'

/** Asks an app with this handler, with an Idempotency-Key if one is given. */
async function answered(t: TestContext, handler: RequestHandler, key?: string) {
  const logger = recordingLogger()
  let runs = 0
  let kept: string | null | undefined
  const app = await serveApp((app) => {
    const counted: RequestHandler = (req, res, next) => {
      runs++
      const call = callOf(req)
      call.onEnd('look', () => queueMicrotask(() => (kept = call.idempotency?.responseBody)))
      return handler(req, res, next)
    }
    app.post('/', express.json(), idempotency({ logger }), counted)
    app.use(errorEnvelope({ logger }))
  })
  t.after(() => app.close())
  const ask = async () => {
    const headers = { 'content-type': 'application/json', ...(key && { 'idempotency-key': key }) }
    const response = await fetch(app.url, { method: 'POST', body: '{}', headers })
    const { status } = response
    const type = response.headers.get('content-type')
    return { status, type, cookie: response.headers.get('set-cookie'), text: await response.text() }
  }
  return { ask, runs: () => runs, kept: () => kept }
}

const FINE = '{"fine":true}'

/** Things that a handler does after its answer, and that an app without idempotency lets pass. */
const BEHIND: Record<string, RequestHandler> = {
  'ends it again': (_req, res) => {
    res.json({ fine: true })
    res.end()
  },
  'answers again': (_req, res) => {
    res.json({ fine: true })
    if (!res.writableEnded) res.status(418).type('text').set('set-cookie', 'a=b').send('another')
  },
  'writes a head again': (_req, res) => {
    res.json({ fine: true })
    if (!res.headersSent) res.writeHead(500, { 'content-type': 'text/plain' }).end('another')
  },
  throws: (_req, res) => {
    res.json({ fine: true })
    throw new Error('not so fine')
  },
  'passes on': (_req, res, next) => {
    res.json({ fine: true })
    next()
  },
}

describe('the answer that a handler has given stands, with a key as without, also where the handler', () => {
  for (const [what, handler] of Object.entries(BEHIND)) {
    it(what, async (t) => {
      const plain = await answered(t, handler)
      const keyed = await answered(t, handler, 'k')
      const first = await keyed.ask()
      assert.deepEqual(first, await plain.ask())
      assert.deepEqual([first.status, first.text], [200, FINE])
      await until(() => keyed.kept() !== undefined, 'the end of the call')
      assert.equal(keyed.kept(), FINE)
      assert.equal((await keyed.ask()).status, 409, 'it ran')
      assert.equal(keyed.runs(), 1)
    })
  }

  it('writes behind its end', async (t) => {
    const { ask } = await answered(
      t,
      (_req, res) => {
        res.json({ fine: true })
        if (!res.writableEnded) res.write('more')
      },
      'k',
    )
    assert.equal((await ask()).text, FINE)
  })
})
