import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import express, { type Response } from 'express'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { idempotency } from '../../../lib/middleware/idempotency/index.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'

interface Run {
  readonly res: Response
  fail(): void
}

/** An app whose handler sends its head, and then what `run` lets it. */
async function headsOnly(t: TestContext) {
  const logger = recordingLogger()
  const runs: Run[] = []
  const app = await serveApp((app) => {
    app.post('/', express.json(), idempotency({ logger }), (_req, res) => {
      const failing = Promise.withResolvers<void>()
      runs.push({ res, fail: () => failing.reject(new Error('no more')) })
      res.flushHeaders()
      return failing.promise
    })
    app.use(errorEnvelope({ logger }))
  })
  t.after(() => app.close())
  const ask = (signal: AbortSignal | null = null) =>
    fetch(app.url, { method: 'POST', headers: { 'idempotency-key': 'k' }, signal })
  return { runs, ask }
}

/** Asks until the key is no longer in use; a release may be under way when the caller has its answer. */
async function patiently(ask: () => Promise<globalThis.Response>) {
  const deadline = performance.now() + 10_000
  for (;;) {
    const got = await ask()
    if (got.status !== 409 || got.headers.get('retry-after') === null) return got
    assert.ok(performance.now() < deadline, 'the key stays in use')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

describe('a handler that fails with its head sent and no byte of a body', () => {
  it('frees its key', async (t) => {
    const { runs, ask } = await headsOnly(t)
    const first = await ask()
    runs[0]?.fail()
    await assert.rejects(first.text())
    assert.equal((await patiently(ask)).status, 200)
    assert.equal(runs.length, 2)
  })

  it('frees its key when its caller has left before, and not sooner', async (t) => {
    const { runs, ask } = await headsOnly(t)
    const leaving = new AbortController()
    await ask(leaving.signal)
    leaving.abort()
    await until(() => runs[0]?.res.destroyed === true, 'the caller leaving')
    assert.equal((await ask()).status, 409)
    assert.equal(runs.length, 1)
    runs[0]?.fail()
    assert.equal((await patiently(ask)).status, 200)
    assert.equal(runs.length, 2)
  })

  it('keeps its key when it goes on to write before it fails', async (t) => {
    const { runs, ask } = await headsOnly(t)
    const leaving = new AbortController()
    await ask(leaving.signal)
    leaving.abort()
    await until(() => runs[0]?.res.destroyed === true, 'the caller leaving')
    runs[0]?.res.write('output')
    runs[0]?.fail()
    const second = await patiently(ask)
    assert.equal(second.status, 409)
    assert.equal(second.headers.get('x-should-retry'), 'false', 'it is a replay')
    assert.equal(runs.length, 1)
  })
})
