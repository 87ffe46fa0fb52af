import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it, mock } from 'node:test'
import type { Request } from 'express'
import { type CallLogEntry, callLog } from '../../../lib/middleware/call-log/index.ts'
import { type LimitLevel, rateLimit } from '../../../lib/middleware/rate-limit/index.ts'
import { serveApp } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'
import { shop } from './shop-app.ts'

describe('long windows', () => {
  beforeEach(() => mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-01-01T00:00:00Z') }))
  afterEach(() => mock.timers.reset())
  const pass = (ms: number) => mock.timers.setTime(Date.now() + ms)
  const HOUR = 3_600_000
  const DAY = 24 * HOUR

  for (const windowMs of [HOUR, DAY, 24 * DAY]) {
    it(`of ${windowMs / HOUR} h return the true wait, which retries do not prolong, and end`, async (t) => {
      const app = await shop(t, { windowMs, levels: [{ name: 'all', by: () => 'all', requests: 1 }] })
      assert.equal((await app.ask()).status, 200)
      pass(HOUR / 2)
      const told = async () => {
        const res = await app.ask()
        assert.equal(res.status, 429)
        return Number(res.headers.get('retry-after'))
      }
      const wait = (windowMs - HOUR / 2) / 1000
      assert.equal(await told(), wait)
      pass(10_000)
      assert.equal(await told(), wait - 10)
      assert.equal(await told(), wait - 10)
      // Within the last minute early retries prolong as in a short window.
      pass((wait - 20) * 1000)
      assert.equal(await told(), 11)
      assert.equal(app.handled, 1)
      pass(11_000)
      assert.equal((await app.ask()).status, 200)
      assert.equal(app.handled, 2)
    })
  }

  it('of more than 24.8 days are refused at construction in memory, whose timers end there', () => {
    const levels = [{ name: 'all', by: () => 'all', requests: 1 }]
    assert.throws(() => rateLimit({ windowMs: 25 * DAY, levels }), /24\.8 days.*RedisLimitStore/)
  })

  it('forget a refusal when the limit is raised', async (t) => {
    let most = 1
    const app = await shop(t, {
      windowMs: DAY,
      levels: [{ name: 'all', by: () => 'all', requests: () => most }],
    })
    await app.ask()
    await app.ask()
    pass(5000)
    assert.equal((await app.ask()).status, 429)
    most = 2
    pass(5000)
    assert.equal((await app.ask()).status, 200)
  })
})

describe('the kind of the limit that refused, in the entry of a call,', () => {
  const byUser = (limits: Partial<LimitLevel>): [LimitLevel] => [
    { name: 'user', by: (req: Request) => req.get('x-user'), ...limits },
  ]
  const CASES = [
    ['rpm', { levels: byUser({ rpm: 1 }) }],
    ['rpm', { levels: byUser({ requests: 1 }), windowMs: 60_000 }],
    ['requests', { levels: byUser({ requests: 1 }), windowMs: 3_600_000 }],
    ['requests', { levels: byUser({ requests: 1 }), windowMs: 1000 }],
    ['tpm', { levels: byUser({ tpm: 7 }), tokens: () => 5 }],
    ['tokens', { levels: byUser({ tokens: 7 }), tokens: () => 5, windowMs: 3_600_000 }],
    ['tokens', { levels: byUser({ tokens: 4 }), tokens: () => 5, windowMs: 3_600_000 }],
  ] as const
  for (const [kind, options] of CASES)
    it(`is ${kind} with ${JSON.stringify(options)}`, async (t) => {
      const entries: CallLogEntry[] = []
      const server = await serveApp((app) => {
        app.use(callLog({ writer: { add: (entry) => void entries.push(entry) } }), rateLimit(options))
        app.get('/', (_req, res) => void res.end())
      })
      t.after(() => server.close())
      const ask = async (user: string) => (await fetch(server.url, { headers: { 'x-user': user } })).status
      const isImpossible = options.levels[0].tokens === 4
      assert.deepEqual(
        [await ask('ann'), await ask('ann'), await ask('ben')],
        isImpossible ? [429, 429, 429] : [200, 429, 200],
      )
      await until(() => entries.length === 3, 'the entries')
      assert.deepEqual([entries[1]?.limit?.kind, entries[1]?.limit?.subject], [kind, 'ann'])
    })
})
