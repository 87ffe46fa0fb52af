import assert from 'node:assert/strict'
import { it } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { RequestHandler } from 'express'
import session from 'express-session'
import { callOf } from '../../../lib/core/call/index.ts'
import { billingGuard } from '../../../lib/middleware/billing-guard/index.ts'
import { idempotency } from '../../../lib/middleware/idempotency/index.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'

/** Sent in pieces and with its length: more than one read of a file. */
const FILE = fileURLToPath(new URL('../../../package-lock.json', import.meta.url))

const once = () => idempotency({ replay: true, answerLimitBytes: 1e8, logger: recordingLogger() })
const paid = () => billingGuard({ reserve: () => '0.02', account: () => 'acme', key: () => null })
/** Its `res.end` sends the last byte once the session is saved, and ignores a second call. */
const sessions = () => session({ secret: 'not a secret', resave: true, saveUninitialized: true })

const ORDERS: Record<string, () => RequestHandler[]> = {
  'idempotency, express-session': () => [once(), sessions()],
  'idempotency, express-session, billingGuard': () => [once(), sessions(), paid()],
  'billingGuard, express-session, idempotency': () => [paid(), sessions(), once()],
}

for (const [order, chain] of Object.entries(ORDERS)) {
  it(`${order}: a file is sent whole, and again`, async (t) => {
    const app = await serveApp((app) => {
      app.post('/', ...chain(), (req, res) => {
        if (callOf(req).billing) callOf(req).charge('0.01')
        res.sendFile(FILE)
      })
    })
    t.after(() => app.close())
    const post = async () => {
      const response = await fetch(app.url, {
        method: 'POST',
        headers: { 'idempotency-key': 'k' },
        signal: AbortSignal.timeout(10_000),
      })
      return { response, length: (await response.arrayBuffer()).byteLength }
    }
    const first = await post()
    assert.equal(first.response.status, 200)
    assert.equal(String(first.length), first.response.headers.get('content-length'))
    const again = await post()
    assert.equal(again.response.headers.get('idempotent-replayed'), 'true')
    assert.equal(again.length, first.length)
  })
}
