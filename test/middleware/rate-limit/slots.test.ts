import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Response } from 'express'
import { until } from '../../support/until.ts'
import { limitedApp } from './limited-app.ts'

/** A handler that begins a stream and leaves the rest to the test. */
function streams() {
  const open: Response[] = []
  return {
    open,
    handler: (_req: unknown, res: Response) => {
      res.type('text/event-stream').write('data: 1\n\n')
      open.push(res)
    },
  }
}

describe('concurrency slots', () => {
  it('are held until a stream has ended', async (t) => {
    const { open, handler } = streams()
    const app = await limitedApp(t, { concurrency: 2, handler })
    const answers = await Promise.all([0, 1].map(() => fetch(app.url)))
    const refused = await app.ask()
    assert.equal(refused.status, 429)
    assert.equal(refused.envelope.error.code, 'concurrency_limited')
    assert.equal(refused.headers.get('x-should-retry'), 'true')
    assert.deepEqual(app.calls[2]?.limit, {
      kind: 'concurrency',
      level: 'account',
      subject: 'a1',
      limit: 2,
      retryAfter: 1,
    })
    open[0]?.end()
    await until(
      () =>
        app.calls.some(({ ended }) => ended && app.handled === 2) &&
        (app.calls[0]?.ended || app.calls[1]?.ended) === true,
    )
    const next = await fetch(app.url)
    assert.equal(next.status, 200)
    for (const each of [...answers, next]) await each.body?.cancel()
  })

  it('come back when the caller leaves', async (t) => {
    const { open, handler } = streams()
    const app = await limitedApp(t, { concurrency: 1, handler })
    const left = new AbortController()
    await fetch(app.url, { signal: left.signal })
    assert.equal((await app.ask()).status, 429)
    left.abort()
    await until(() => app.calls[0]?.ended === true)
    const next = await fetch(app.url)
    assert.equal(next.status, 200)
    assert.equal(open.length, 2)
    await next.body?.cancel()
  })

  it('come back when the handler throws', async (t) => {
    const app = await limitedApp(t, {
      concurrency: 1,
      handler: () => {
        throw new Error('broken')
      },
    })
    for (let i = 0; i < 5; i++) assert.equal((await app.ask()).status, 500)
  })

  it('are not taken by a request that another limit refuses', async (t) => {
    const app = await limitedApp(t, { concurrency: 1, keyRpm: 1 })
    await app.ask({ key: 'k1' })
    for (let i = 0; i < 5; i++)
      assert.equal((await app.ask({ key: 'k1' })).envelope.error.code, 'rate_limited')
    assert.equal((await app.ask({ key: 'k2' })).status, 200)
  })

  it('leave requests and tokens uncounted when none is free', async (t) => {
    const { open, handler } = streams()
    const app = await limitedApp(t, { concurrency: 1, rpm: 3, handler })
    const first = await fetch(app.url)
    for (let i = 0; i < 5; i++) assert.equal((await app.ask()).envelope.error.code, 'concurrency_limited')
    await first.body?.cancel()
    await until(() => app.calls[0]?.ended === true)
    const second = await fetch(app.url)
    assert.equal(second.headers.get('x-ratelimit-remaining-requests'), '1')
    await second.body?.cancel()
    assert.equal(open.length, 2)
  })
})
