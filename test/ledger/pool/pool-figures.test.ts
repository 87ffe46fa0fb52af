import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { ledgerOf, units } from '../support/faulty-ledger.ts'
import { PoolProcess, settle } from '../support/pool-process.ts'
import { turns } from '../support/virtual-clock.ts'

const ONE = units(1)
const NOTHING = {
  outages: 0,
  queued: 0,
  queuedBytes: 0,
  queuedMs: 0,
  setAside: 0,
  lockedAccounts: 0,
  waiting: 0,
  wallets: 0,
  leases: 0,
  leasesLost: 0,
  overruns: 0,
  leasesSwept: 0,
}

describe('the figures of a pool', () => {
  it('are zero before the first call, and after a time without calls', async () => {
    const process = new PoolProcess(ledgerOf('10', { k: '10' }))
    assert.deepEqual(process.pool.stats, NOTHING)
    settle(await process.admitted(ONE, 'k'), 'req', ONE)
    await process.clock.advance(60_000)
    assert.deepEqual(process.pool.stats, NOTHING)
  })

  it('contain the queued charges, and the age of the oldest, until they are written', async () => {
    const process = new PoolProcess(ledgerOf('10', { k: '10' }), { stallMs: 10_000 })
    const { pool, clock, ledger } = process
    const [first, second] = [await process.admitted(ONE, 'k'), await process.admitted(ONE)]
    const leases = { wallets: 2, leases: 2 }
    assert.deepEqual(pool.stats, { ...NOTHING, ...leases })
    ledger.faults.set('settle', 'waits')
    settle(first, 'one', ONE)
    await clock.advance(300)
    settle(second, 'two', ONE)
    await clock.advance(200)
    const seen = pool.stats
    assert.deepEqual([seen.queued, seen.queuedBytes, seen.queuedMs, seen.outages], [2, 2 * 2048, 500, 0])
    ledger.letThrough()
    await turns()
    // The second has been handed over since.
    assert.deepEqual([pool.stats.queued, pool.stats.queuedMs], [1, 200])
    ledger.mend()
    await turns()
    const { queued, queuedBytes, queuedMs } = pool.stats
    assert.deepEqual([queued, queuedBytes, queuedMs], [0, 0, 0])
  })

  it('count the waiting calls, and the swept leases and charges', async () => {
    const shared = ledgerOf('100')
    const process = new PoolProcess(shared)
    const { pool, ledger } = process
    const held = await process.admitted(ONE)
    ledger.faults.set('change', 'waits')
    const waiting = pool.reserve({ account: 'acme', key: null, amount: units(50) })
    assert.deepEqual([waiting instanceof Promise, pool.stats.waiting], [true, 1])
    for (const { id, beats } of await shared.leases()) await shared.sweep(id, beats)
    ledger.mend()
    await turns()
    assert.deepEqual([pool.stats.leasesLost, pool.stats.overruns], [1, 0])
    assert.ok((await waiting) instanceof Reservation)
    await settle(held, 'req', ONE).outcome
    assert.deepEqual([pool.stats.leasesLost, pool.stats.overruns, pool.stats.waiting], [1, 1, 0])
    assert.deepEqual((await shared.check()).violations, [])
  })
})
