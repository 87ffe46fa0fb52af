import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { callOf, entryOf } from '../../../lib/core/call/index.ts'
import { MemoryLedger } from '../../../lib/ledger/index.ts'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { eventually } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { type PaidApp, type PaidAppOptions, servePaid } from './paid-app.ts'

const cleanUp = cleaningUp()

async function serve({
  balance = '10',
  ...options
}: Omit<PaidAppOptions, 'ledger'> & { balance?: string }): Promise<PaidApp> {
  const ledger = new MemoryLedger({
    accounts: [{ id: 'acme', balance }],
    keys: [{ id: 'small', quota: '2' }],
  })
  const app = await servePaid({ ledger, ...options })
  cleanUp.after(() => app.close())
  return app
}

describe('billingGuard before a handler of one’s own', () => {
  it('charges what the handler reports, and holds nothing of it any more', async () => {
    const app = await serve({
      handler(req, res) {
        callOf(req).charge('0.25')
        callOf(req).charge(50_000_000n)
        res.json({ drawn: true })
      },
    })
    const answer = await app.get()
    assert.equal(answer.status, 200)
    assert.deepEqual(await answer.json(), { drawn: true })
    assert.equal((await app.account('acme')).spent, '0.3')
    await app.pool.close()
    assert.equal((await app.account('acme')).leased, '0')
  })

  it('charges nothing where the handler reports nothing', async () => {
    const app = await serve({ handler: (_req, res) => res.json({}) })
    assert.equal((await app.get()).status, 200)
    assert.equal((await app.account('acme')).spent, '0')
  })

  it('charges nothing for an error, and gives back what it held', async () => {
    const app = await serve({
      balance: '1',
      handler(req, res) {
        callOf(req).charge('0.25')
        res.status(500).json({})
      },
    })
    for (let i = 0; i < 5; i++) assert.equal((await app.get()).status, 500)
    assert.equal((await app.account('acme')).spent, '0')
  })

  it('charges nothing when the handler throws', async () => {
    const app = await serve({
      balance: '1',
      handler(req) {
        callOf(req).charge('0.25')
        throw new Error('the printer is on fire')
      },
    })
    for (let i = 0; i < 3; i++) assert.equal((await app.get()).status, 500)
    assert.equal((await app.account('acme')).spent, '0')
  })

  it('charges for what a caller has been sent who leaves halfway', async () => {
    const app = await serve({
      handler(req, res) {
        callOf(req).charge('0.25')
        res.write('half')
      },
    })
    const leaving = new AbortController()
    const answer = await fetch(app.url, { headers: { 'x-account': 'acme' }, signal: leaving.signal })
    assert.equal(answer.status, 200)
    leaving.abort()
    const [call] = app.handled
    await eventually(() => call?.ended === true, 'the end of the call')
    assert.equal((await app.account('acme')).spent, '0.25')
  })

  it('holds the money of a caller who has left until the handler has answered, and charges it', async () => {
    const finish: (() => void)[] = []
    const app = await serve({
      balance: '1',
      handler(req, res) {
        finish.push(() => {
          callOf(req).charge('0.75')
          res.json({})
        })
      },
    })
    for (let i = 0; i < 3; i++) {
      const leaving = new AbortController()
      const answer = fetch(app.url, { headers: { 'x-account': 'acme' }, signal: leaving.signal })
      if (i === 0) await eventually(() => finish.length === 1, 'the first call')
      else assert.equal((await answer).status, 503)
      leaving.abort()
      await answer.catch(() => {})
    }
    await eventually(() => app.handled[0]?.ended === true, 'the end of the call')
    finish[0]?.()
    await eventually(() => app.handled[0]?.billing?.charged === 750_000_000n, 'the charge')
    assert.equal((await app.get()).status, 402)
    assert.equal(finish.length, 1)
  })

  it('gives back the money of a caller who has left when the handler answers with an error', async () => {
    let fail = (): void => {}
    const app = await serve({
      balance: '1',
      handler(_req, res) {
        if (app.handled.length === 1) fail = () => res.status(500).json({})
        else res.json({})
      },
    })
    const leaving = new AbortController()
    const answer = fetch(app.url, { headers: { 'x-account': 'acme' }, signal: leaving.signal })
    await eventually(() => app.handled.length === 1, 'the call')
    leaving.abort()
    await answer.catch(() => {})
    await eventually(() => app.handled[0]?.ended === true, 'the end of the call')
    fail()
    assert.equal((await app.get()).status, 200)
  })

  it('refuses an account whose balance cannot cover it: the handler does not run, and no amount is shown', async () => {
    const app = await serve({ balance: '0.5', handler: (_req, res) => res.json({}) })
    const answer = await app.get()
    assert.equal(answer.status, 402)
    const { error } = await envelopeOf(answer)
    assert.equal(error.code, 'insufficient_balance')
    assert.equal(error.type, 'insufficient_quota')
    assert.doesNotMatch(JSON.stringify(error), /0\.5|\d{4}/)
    assert.equal(app.handled.length, 0)
    assert.equal((await app.account('acme')).leased, '0')
  })

  it('refuses an account that the ledger does not know', async () => {
    const app = await serve({ handler: (_req, res) => res.json({}) })
    assert.equal((await app.get('nobody')).status, 402)
    assert.equal(app.handled.length, 0)
  })

  it('refuses a key whose quota is used up while its account has money', async () => {
    const app = await serve({
      handler(req, res) {
        callOf(req).charge('0.75')
        res.json({})
      },
    })
    assert.equal((await app.get('acme', 'small')).status, 200)
    assert.equal((await app.get('acme', 'small')).status, 200)
    const refused = await app.get('acme', 'small')
    assert.equal(refused.status, 402)
    assert.equal((await envelopeOf(refused)).error.code, 'key_quota_exhausted')
    assert.equal(app.handled.length, 2)
    assert.equal((await app.get('acme')).status, 200)
  })

  it('holds what a call can cost while it runs, so that others cannot spend it', async () => {
    let finish = (): void => {}
    const app = await serve({
      balance: '1.5',
      handler(_req, res) {
        finish = () => res.json({})
      },
    })
    const first = app.get()
    await eventually(() => app.handled.length === 1, 'the first call')
    const second = await app.get()
    assert.equal(second.status, 503)
    assert.equal((await envelopeOf(second)).error.code, 'quota_lease_exhausted')
    finish()
    assert.equal((await first).status, 200)
    const third = app.get()
    await eventually(() => app.handled.length === 2, 'the third call')
    finish()
    assert.equal((await third).status, 200)
  })

  it('writes to the call what was held and charged, and how that came about', async () => {
    const app = await serve({
      handler(req, res) {
        callOf(req).charge('0.25')
        res.json({})
      },
    })
    await app.get()
    const [call] = app.handled
    assert.ok(call)
    await eventually(() => call.ended, 'the end of the call')
    assert.deepEqual(entryOf(call).billing, {
      currency: 'USD',
      reserved: '1',
      charged: '0.25',
      required: null,
      available: null,
      items: [{ unit: 'own', quantity: 1, price: '0.25' }],
    })
  })

  it('says so when there is no account to charge', async () => {
    const app = await serve({ handler: (_req, res) => res.json({}) })
    assert.equal((await fetch(app.url)).status, 500)
    assert.equal(app.handled.length, 0)
  })
})

describe('charge', () => {
  it('refuses what is no amount, and a call without a guard', async () => {
    const app = await serve({
      handler(req, res) {
        const call = callOf(req)
        assert.throws(() => call.charge('much'), RangeError)
        assert.throws(() => call.charge(-1n), RangeError)
        assert.throws(() => call.charge(0.01 as never), /must be a decimal string/)
        assert.throws(() => call.charge(2n ** 63n), /more than 64 bits hold/)
        call.billing = null
        assert.throws(() => call.charge('1'), /mount billingGuard/)
        res.json({})
      },
    })
    assert.equal((await app.get()).status, 200)
  })
})
