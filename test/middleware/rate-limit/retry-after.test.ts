import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it, mock } from 'node:test'
import { limitedApp } from './limited-app.ts'

describe('Retry-After', () => {
  // Only the date: sockets need their timers.
  beforeEach(() => mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-01-01T00:00:00Z') }))
  afterEach(() => mock.timers.reset())
  const pass = (seconds: number) => mock.timers.setTime(Date.now() + seconds * 1000)
  const waitOf = ({ headers }: { headers: Headers }) => Number(headers.get('retry-after'))

  it('is the time after which the request passes, and not before', async (t) => {
    const app = await limitedApp(t, { keyRpm: 1 })
    await app.ask()
    pass(12.3)
    const refused = await app.ask()
    assert.equal(waitOf(refused), 48)
    assert.equal(refused.headers.get('retry-after-ms'), '47700')
    pass(47.7)
    assert.equal((await app.ask()).status, 200)
  })

  it('grows by a second for each request sent before its time', async (t) => {
    const app = await limitedApp(t, { keyRpm: 1 })
    await app.ask()
    pass(10)
    assert.equal(waitOf(await app.ask()), 50)
    pass(10)
    assert.equal(waitOf(await app.ask()), 41)
    assert.equal(waitOf(await app.ask()), 42)
    pass(41)
    const refused = await app.ask()
    assert.equal(refused.status, 429)
    assert.equal(waitOf(refused), 1)
    assert.equal(app.calls.at(-1)?.limit?.retryAfter, 1)
    pass(1)
    assert.equal((await app.ask()).status, 200)
    assert.equal(app.handled, 2)
  })

  it('does not grow by requests that are small enough to pass', async (t) => {
    const app = await limitedApp(t, { keyTpm: 100 })
    await app.ask({ tokens: 80 })
    assert.equal(waitOf(await app.ask({ tokens: 30 })), 60)
    pass(10)
    for (let i = 0; i < 2; i++) assert.equal((await app.ask({ tokens: 10 })).status, 200)
    pass(50)
    assert.equal((await app.ask({ tokens: 30 })).status, 200)
  })

  it('grows for a client whose quick calls used the limit up and that asks early, each time', async (t) => {
    const app = await limitedApp(t, { keyRpm: 20 })
    for (let i = 0; i < 20; i++) assert.equal((await app.ask()).status, 200)
    assert.equal(waitOf(await app.ask()), 60)
    pass(20)
    for (const seconds of [41, 42, 43]) assert.equal(waitOf(await app.ask()), seconds)
    pass(42)
    // The wait that was sent first is over: nothing is added, and the rest is still to be waited.
    assert.equal(waitOf(await app.ask()), 1)
    pass(1)
    assert.equal((await app.ask()).status, 200)
  })

  it('is never over 60', async (t) => {
    const app = await limitedApp(t, { keyRpm: 1 })
    await app.ask()
    await app.ask()
    pass(2)
    for (let i = 0; i < 70; i++) assert.ok(waitOf(await app.ask()) <= 60)
  })

  it('does not grow for a key that waits, whatever other keys of its account do', async (t) => {
    const app = await limitedApp(t, { rpm: 1 })
    await app.ask({ key: 'first' })
    const wait = waitOf(await app.ask({ key: 'patient' }))
    await app.ask({ key: 'impatient' })
    pass(5)
    for (let i = 0; i < 5; i++) await app.ask({ key: 'impatient' })
    pass(wait - 5)
    assert.equal((await app.ask({ key: 'patient' })).status, 200)
  })

  it('of a full account is the least there is: a slot may come free any time', async (t) => {
    const waiting: (() => void)[] = []
    const app = await limitedApp(t, {
      concurrency: 1,
      handler: (_req, res) => void waiting.push(() => res.json({})),
    })
    const running = app.ask()
    while (waiting.length === 0) await new Promise((resolve) => setImmediate(resolve))
    const refused = await app.ask()
    assert.equal(refused.envelope.error.code, 'concurrency_limited')
    assert.equal(waitOf(refused), 1)
    waiting[0]?.()
    await running
  })
})
