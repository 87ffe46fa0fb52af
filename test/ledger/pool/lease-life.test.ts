import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { ledgerOf, units } from '../support/faulty-ledger.ts'
import { PoolProcess, settle, tally } from '../support/pool-process.ts'
import { turns } from '../support/virtual-clock.ts'

const ONE = units(1)

/** Both processes live through the same time. */
async function advance(processes: readonly PoolProcess[], ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 1000)
    for (const { clock } of processes) await clock.advance(Math.min(1000, left))
}

describe('the life of a lease', () => {
  it('continues while its process renews it, for calls of any length', async () => {
    const shared = ledgerOf('100')
    const [one, other] = [new PoolProcess(shared), new PoolProcess(shared)]
    const held = await one.admitted(units(3))
    await advance([one, other], 300_000)
    assert.equal((await shared.check()).leased, units(3))
    await settle(held, 'req', ONE).outcome
    const [wallet] = await shared.wallets(['account:acme'])
    assert.deepEqual([wallet?.overrun, other.pool.stats.leasesSwept, one.pool.stats.leasesLost], [0n, 0, 0])
  })

  it('stops admission on a lease that could not be renewed for 25 s, until it can be', async () => {
    const shared = ledgerOf('100')
    const { pool, clock, ledger } = new PoolProcess(shared)
    const busy = await tally(
      Array.from({ length: 20 }, () => pool.reserve({ account: 'acme', key: null, amount: ONE })),
    )
    busy.admitted[0]?.release()
    ledger.faults.set('renew', 'fails')
    ledger.faults.set('change', 'fails')
    await clock.advance(24_000)
    const sooner = pool.reserve({ account: 'acme', key: null, amount: ONE })
    assert.ok(sooner instanceof Reservation)
    sooner.release()
    await clock.advance(2000)
    const later = Promise.resolve(pool.reserve({ account: 'acme', key: null, amount: ONE }))
    await clock.advance(1100)
    assert.deepEqual(await later, { refused: 'billing_unavailable', required: ONE, available: null })
    ledger.mend()
    await clock.advance(2000)
    assert.ok(pool.reserve({ account: 'acme', key: null, amount: ONE }) instanceof Reservation)
  })

  it('ends if its process was stopped for 70 s: it charges correctly, and opens another lease', async () => {
    const shared = ledgerOf('100')
    const [stopped, living] = [new PoolProcess(shared), new PoolProcess(shared)]
    const calls = await tally(
      Array.from({ length: 10 }, () => stopped.pool.reserve({ account: 'acme', key: null, amount: ONE })),
    )
    calls.admitted[9]?.release()
    await advance([living], 70_000)
    stopped.clock.stopFor(70_000)
    assert.equal((await shared.check()).leased, 0n)
    // It believes that one is free: nobody may be admitted on it.
    const next = stopped.pool.reserve({ account: 'acme', key: null, amount: ONE })
    assert.ok(next instanceof Promise)
    const held = await next
    assert.ok(held instanceof Reservation)
    for (const [i, call] of calls.admitted.slice(0, 9).entries())
      await settle(call, `req-${i}`, ONE / 2n).outcome
    await settle(held, 'req-next', ONE).outcome
    const [wallet] = await shared.wallets(['account:acme'])
    assert.deepEqual([wallet?.spent, wallet?.overrun], [units(5.5), units(4.5)])
    assert.deepEqual([stopped.pool.stats.leasesLost, stopped.pool.stats.overruns], [1, 9])
    await advance([stopped, living], 14_000)
    const { leased, violations } = await shared.check()
    assert.deepEqual([leased, violations], [0n, []])
  })

  it('ends when the renewal finds it gone', async () => {
    const shared = ledgerOf('100')
    const process = new PoolProcess(shared)
    const running = await process.admitted(ONE)
    // Of a wallet that is idle the ledger is asked nothing but to renew.
    await process.clock.advance(15_000)
    const asked = process.ledger.changes.length
    const [lease] = await shared.leases()
    assert.ok(lease && (await shared.sweep(lease.id, lease.beats)))
    await process.clock.advance(8000)
    assert.deepEqual([process.pool.stats.leasesLost, process.ledger.changes.length], [1, asked])
    await process.admitted(ONE)
    running.release()
    assert.ok((await shared.check()).leased >= ONE)
  })
})

describe('the lease of a process that died', () => {
  it('is returned within 45 s, and not before 30 s', async () => {
    const shared = ledgerOf('100', { k: '50' })
    const [killed, living] = [new PoolProcess(shared), new PoolProcess(shared)]
    await advance([killed, living], 10_000)
    await killed.admitted(units(3), 'k')
    await advance([living], 30_000)
    assert.equal((await shared.check()).leased, units(3))
    await advance([living], 15_000)
    assert.deepEqual([(await shared.check()).leased, living.pool.stats.leasesSwept], [0n, 2])
  })

  it('is not returned by a process that could not observe it meanwhile', async () => {
    const shared = ledgerOf('100')
    const [killed, living] = [new PoolProcess(shared), new PoolProcess(shared)]
    await killed.admitted(units(3))
    await advance([living], 25_000)
    living.ledger.breakDown()
    await advance([living], 4000)
    living.ledger.mend()
    await advance([living], 28_000)
    assert.equal((await shared.check()).leased, units(3))
    await advance([living], 10_000)
    assert.equal((await shared.check()).leased, 0n)
  })

  it('is not returned by a process that was stopped itself: all processes renew before any of them sweeps', async () => {
    const shared = ledgerOf('100')
    const [one, other] = [new PoolProcess(shared), new PoolProcess(shared)]
    await one.admitted(units(3))
    await advance([one, other], 12_000)
    for (const { clock } of [one, other]) clock.stopFor(60_000)
    await other.clock.advance(1)
    await one.clock.advance(8000)
    await advance([one, other], 60_000)
    assert.deepEqual([other.pool.stats.leasesSwept, one.pool.stats.leasesLost], [0, 0])
    assert.equal((await shared.check()).leased, units(3))
  })

  it('is returned by a single later process', async () => {
    const shared = ledgerOf('100')
    await new PoolProcess(shared).admitted(units(3))
    const next = new PoolProcess(shared)
    await next.clock.advance(36_000)
    await turns()
    assert.equal((await shared.check()).leased, 0n)
  })
})
