import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ledgerOf, units } from '../support/faulty-ledger.ts'
import { PoolProcess, settle } from '../support/pool-process.ts'
import { turns } from '../support/virtual-clock.ts'

const ONE = units(1)

describe('an answer of the ledger that is lost', () => {
  it('to a take is requested again, and takes nothing twice', async () => {
    const shared = ledgerOf('100')
    const { pool, clock, ledger } = new PoolProcess(shared)
    ledger.faults.set('change', 'unheard')
    const held = Promise.resolve(pool.reserve({ account: 'acme', key: null, amount: ONE }))
    await turns()
    assert.equal((await shared.check()).leased, ONE)
    ledger.mend()
    await clock.advance(60)
    const reservation = await held
    assert.ok('release' in reservation)
    assert.equal((await shared.check()).leased, ONE)
    assert.deepEqual(ledger.changes[0], ledger.changes[1])
    settle(reservation, 'req', ONE)
    await clock.advance(14_000)
    assert.deepEqual([(await shared.check()).leased, await shared.leases()], [0n, []])
  })

  it('to a change of an existing lease loses nothing', async () => {
    const shared = ledgerOf('100')
    const process = new PoolProcess(shared)
    const { pool, clock, ledger } = process
    const first = await process.admitted(ONE)
    ledger.faults.set('change', 'unheard')
    const second = Promise.resolve(pool.reserve({ account: 'acme', key: null, amount: units(20) }))
    await clock.advance(300)
    ledger.mend()
    await clock.advance(600)
    const reservation = await second
    assert.ok('release' in reservation)
    for (const held of [first, reservation]) held.release()
    await clock.advance(14_000)
    assert.deepEqual([(await shared.check()).leased, pool.stats.leasesLost], [0n, 0])
  })

  it('to a charge is requested again, and the charge is made once', async () => {
    const shared = ledgerOf('100')
    const process = new PoolProcess(shared)
    const { outcome, resolved } = settle(await process.admitted(units(2)), 'req', ONE)
    process.ledger.faults.set('settle', 'unheard')
    const second = settle(await process.admitted(units(2)), 'req-2', ONE)
    await turns()
    process.ledger.mend()
    await process.clock.advance(100)
    assert.deepEqual([await outcome, await second.outcome], ['confirmed', 'confirmed'])
    assert.deepEqual([resolved, second.resolved], [['confirmed'], ['confirmed']])
    const { spent, charges, violations } = await shared.check()
    assert.deepEqual([spent, charges, violations], [units(2), 2, []])
    await process.clock.advance(14_000)
    assert.equal((await shared.check()).leased, 0n)
  })

  for (const lost of [1, 2, 3])
    it(`to a charge does not free the money that the charge took, lost ${lost} times`, async () => {
      const shared = ledgerOf('10')
      const process = new PoolProcess(shared)
      const whole = process.ledger.settle.bind(process.ledger)
      let asked = 0
      process.ledger.settle = async (settlements) => {
        const answer = await whole(settlements)
        if (++asked <= lost) throw new Error('the connection was lost')
        return answer
      }
      const held = await process.admitted(units(10))
      let next: unknown
      const bill = { requestId: 'req', amount: units(10), at: 0, basis: () => '[]', claim: null, entry: null }
      void held.settle({
        ...bill,
        // At once: what a lease has left goes back soon.
        onResolved: () => {
          next = process.pool.reserve({ account: 'acme', key: null, amount: ONE })
        },
      })
      await process.clock.advance(5000)
      assert.equal(asked, lost + 1)
      assert.ok(next instanceof Promise, 'admitted without money')
      assert.equal((await next).refused, 'insufficient_balance')
      assert.deepEqual((await shared.check()).violations, [])
    })

  it('a charge that another process has written already leaves the money where it is', async () => {
    const shared = ledgerOf('100')
    const [one, other] = [new PoolProcess(shared), new PoolProcess(shared)]
    await settle(await one.admitted(ONE), 'same', ONE).outcome
    await settle(await other.admitted(ONE), 'same', ONE).outcome
    await other.clock.advance(14_000)
    assert.deepEqual(
      [(await shared.check()).spent, (await shared.wallets(['account:acme']))[0]?.overrun],
      [ONE, 0n],
    )
    const leases = await shared.leases()
    assert.deepEqual(
      leases.filter(({ owner }) => owner === other.owner),
      [],
    )
  })
})
