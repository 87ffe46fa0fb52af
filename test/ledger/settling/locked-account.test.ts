import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MemoryLedger } from '../../../lib/ledger/index.ts'
import { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { WalletsLocked } from '../../../lib/ledger/wallets-locked.ts'
import { units } from '../support/faulty-ledger.ts'
import { PoolProcess, settle } from '../support/pool-process.ts'

const ONE = units(1)

/** A process whose ledger cannot write charges of one account while its rows are locked. */
function world({ gathers = false } = {}) {
  const accounts = ['acme', 'busy'].map((id) => ({ id, balance: '1000' }))
  const shared = new MemoryLedger({ accounts, keys: accounts.map(({ id }) => ({ id: `key-of-${id}` })) })
  const process = new PoolProcess(shared, { gathers, confirmMs: 60_000 })
  const { ledger, pool } = process
  const state = { isLocked: false }
  const whole = ledger.settle.bind(ledger)
  ledger.settle = (settlements) =>
    state.isLocked && settlements.some(({ account }) => account === 'acme')
      ? Promise.reject(new WalletsLocked(new Set(['account:acme'])))
      : whole(settlements)
  let made = 0
  return {
    ...{ shared, process, pool, state, clock: process.clock },
    /** Charges an account. Returns what is known of the charge, or why the call was refused. */
    async charge(account: string) {
      const held = await pool.reserve({ account, key: `key-of-${account}`, amount: ONE })
      return held instanceof Reservation ? settle(held, `req-${++made}`, ONE).resolved : held.refused
    },
    told: () => process.logger.lines.map(({ level, message, fields }) => ({ level, message, fields })),
  }
}

describe('an account whose rows are locked', () => {
  for (const gathers of [false, true])
    it(`is reported once, and again when its charges are written, while others go on; the ledger ${gathers ? 'gathers' : 'takes each'}`, async () => {
      const { shared, pool, state, clock, charge, told } = world({ gathers })
      for (const account of ['acme', 'busy']) await charge(account)
      await clock.advance(100)
      state.isLocked = true
      const waiting = [await charge('acme'), await charge('acme')]
      await clock.advance(400)
      assert.deepEqual([told(), pool.stats.lockedAccounts, pool.stats.queued], [[], 1, 2])
      await clock.advance(3000)
      assert.deepEqual(waiting, [[], []])
      assert.equal(await charge('acme'), 'billing_unavailable')
      const other = await charge('busy')
      await clock.advance(50)
      assert.deepEqual([other, pool.away, pool.stats.outages], [['confirmed'], false, 0])
      const [{ fields, ...line } = { fields: {} }, ...more] = told()
      const { err, ...rest } = fields as { err: unknown }
      assert.ok(err instanceof WalletsLocked)
      const message = 'the charges of an account wait: its rows are locked'
      assert.deepEqual([line, rest, more], [{ level: 'error', message }, { account: 'acme', charges: 2 }, []])

      state.isLocked = false
      await clock.advance(1000)
      assert.deepEqual(waiting, [['confirmed'], ['confirmed']])
      const [, again = { level: '', message: '', fields: {} }, ...others] = told()
      const { account, forMs } = again.fields as { account: string; forMs: number }
      assert.deepEqual(
        [again.level, again.message, account, others],
        ['warn', 'the charges of an account are written again', 'acme', []],
      )
      assert.ok(Number.isInteger(forMs) && forMs >= 3450 && forMs <= 4500, `${forMs} ms`)
      assert.deepEqual([pool.stats.lockedAccounts, pool.stats.queued], [0, 0])
      assert.ok(Array.isArray(await charge('acme')), 'it is served again')
      assert.deepEqual((await shared.check()).violations, [])
    })

  it('is not logged if that lasts only a moment', async () => {
    const { state, clock, charge, told, pool } = world()
    await charge('acme')
    state.isLocked = true
    const resolved = await charge('acme')
    await clock.advance(400)
    state.isLocked = false
    await clock.advance(1000)
    assert.deepEqual([resolved, told(), pool.stats.lockedAccounts], [['confirmed'], [], 0])
  })
})
