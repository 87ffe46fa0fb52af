import assert from 'node:assert/strict'
import { beforeEach, it, type TestContext } from 'node:test'
import type express from 'express'
import { callOf, type EarlyRefuser, type OpenCall } from '../../../lib/core/call/index.ts'
import type { GatewayError } from '../../../lib/core/errors/index.ts'
import {
  type Demand,
  type LimitStore,
  MemoryLimitStore,
  type RateLimitOptions,
  rateLimit,
  type Verdict,
} from '../../../lib/middleware/rate-limit/index.ts'
import { serveApp } from '../../support/app-server.ts'

/** A store that other processes share. It may be asked for what a request needs, and for nothing else. */
class SharedStore implements LimitStore {
  readonly keepsTime = true
  readonly memory = new MemoryLimitStore()
  asked = 0

  async admit(demand: Demand): Promise<Verdict> {
    this.asked++
    return this.memory.admit(demand)
  }

  peek(demand: Demand): Promise<Verdict> {
    return this.memory.peek(demand)
  }

  hold(demand: Demand): void {
    this.memory.hold(demand)
  }

  release(demand: Demand): void {
    this.memory.release(demand)
  }
}

let store: SharedStore
beforeEach(() => {
  store = new SharedStore()
})

/** An app that answers what refuses a request before it is read, and then limits it; who calls stands in `x-user`. */
async function early(t: TestContext, options: RateLimitOptions) {
  const limits = rateLimit({ store, ...options })
  const calls: OpenCall[] = []
  const app = await serveApp((app: express.Express) => {
    app.get('/', async (req, _res, next) => {
      calls.push(callOf(req))
      const refusal = await (limits as EarlyRefuser).refuseEarly(req, callOf(req), undefined as never)
      if (refusal) next(refusal)
      else if (req.headers['x-only'] === 'early') next(Object.assign(new Error('read'), { status: 299 }))
      else next()
    })
    app.use(limits, (req, res) => {
      if (req.headers['x-only'] !== 'hold') res.send('ok')
      else res.write('held')
    })
    app.use(((error: GatewayError, _req, res, _next) => {
      res.status(error.status).set(error.headers).send(error.message)
    }) satisfies express.ErrorRequestHandler)
  })
  t.after(app.close)
  const ask = async (only?: 'early' | 'hold', user = 'ann') => {
    const headers = { 'x-user': user, ...(only ? { 'x-only': only } : {}) }
    const res = await fetch(app.url, { headers })
    return { status: res.status, headers: res.headers, body: only === 'hold' ? res.body : await res.text() }
  }
  return { ask, calls }
}

const level = (limits: object) => ({
  name: 'user',
  by: (req: express.Request) => req.get('x-user'),
  ...limits,
})

it('a spent window refuses before the body is read, until it ends, and nothing is counted', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_700_000_000_000 })
  const { ask, calls } = await early(t, { levels: [level({ rpm: 2, tpm: 100 })], tokens: () => 40 })
  assert.equal((await ask()).status, 200)
  assert.equal((await ask('early')).status, 299, 'half of it is left')
  t.mock.timers.tick(10_000)
  assert.equal((await ask()).status, 200)
  const refused = await ask()
  assert.equal(refused.status, 429)
  assert.equal(refused.headers.get('retry-after'), '50')
  assert.equal(refused.headers.get('x-ratelimit-remaining-requests'), '0')
  assert.equal(store.asked, 2, 'nothing is counted for it')
  assert.deepEqual(calls.at(-1)?.limit, {
    kind: 'rpm',
    level: 'user',
    subject: 'ann',
    limit: 2,
    retryAfter: 50,
  })
  assert.equal((await ask('early', 'bob')).status, 299, 'another has its own')
  t.mock.timers.tick(49_999)
  assert.equal((await ask('early')).status, 429)
  t.mock.timers.tick(1)
  assert.equal((await ask('early')).status, 299)
})

it('of several spent windows the one with the longest wait refuses, whatever their order', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_700_000_000_000 })
  const app = { name: 'app', by: () => 'all', rpm: 2 }
  for (const levels of [
    [app, level({ rpm: 1 })],
    [level({ rpm: 1 }), app],
  ]) {
    store = new SharedStore()
    const { ask, calls } = await early(t, { levels })
    await ask(undefined, 'bob')
    t.mock.timers.tick(5000)
    await ask()
    assert.equal((await ask('early')).headers.get('retry-after'), '60')
    assert.equal(calls.at(-1)?.limit?.level, 'user')
    assert.equal((await ask('early', 'eve')).headers.get('retry-after'), '55')
    assert.equal(calls.at(-1)?.limit?.level, 'app')
  }
})

it('a spent window refuses no call whose limit was raised', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_700_000_000_000 })
  let rpm = 1
  const { ask } = await early(t, { levels: [level({ rpm: () => rpm })] })
  await ask()
  assert.equal((await ask('early')).status, 429)
  rpm = 2
  assert.equal((await ask('early')).status, 299)
})

it('slots that calls of this process hold refuse before the body is read, with the shortest wait', async (t) => {
  const { ask, calls } = await early(t, { levels: [level({ rpm: 9, concurrency: 1 })] })
  const { body } = await ask('hold')
  const refused = await ask()
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '1'])
  assert.equal(refused.headers.get('x-ratelimit-remaining-requests'), '8')
  assert.equal(calls.at(-1)?.limit?.kind, 'concurrency')
  assert.equal(store.asked, 1)
  assert.equal((await ask('early', 'bob')).status, 299)
  await (body as ReadableStream).cancel()
})

it('a limit that can never be passed refuses before the body is read, and the store is not asked', async (t) => {
  for (const [kind, status] of [
    [{ rpm: 0 }, 429],
    [{ tpm: 0 }, 429],
    [{ concurrency: 0 }, 429],
    [{ tpm: 1 }, 299],
  ] as const) {
    const { ask } = await early(t, { levels: [level(kind)], tokens: () => 50 })
    const answer = await ask('early')
    assert.equal(answer.status, status, JSON.stringify(kind))
    if (status === 429) {
      assert.match(String(answer.body), /can never pass/)
      assert.equal(answer.headers.get('x-should-retry'), 'false')
    }
  }
  assert.equal(store.asked, 0)
})

it('no request is refused early that is skipped or has no limits, also where a promise decides that', async (t) => {
  const spent = level({ rpm: 0 })
  for (const options of [
    { levels: [spent], skip: () => true },
    { levels: [spent], skip: async () => true },
    { levels: [level({ rpm: null })] },
    { levels: [level({ rpm: async () => null })] },
  ] satisfies RateLimitOptions[]) {
    const { ask } = await early(t, options)
    for (let i = 0; i < 2; i++) assert.equal((await ask('early')).status, 299)
  }
  for (const options of [
    { levels: [spent], skip: async () => false },
    { levels: [level({ rpm: async () => 0 })] },
  ] satisfies RateLimitOptions[]) {
    const { ask } = await early(t, options)
    for (let i = 0; i < 2; i++) assert.equal((await ask('early')).status, 429)
  }
})
