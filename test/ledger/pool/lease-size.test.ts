import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { ledgerOf, units } from '../support/faulty-ledger.ts'
import { PoolProcess, settle } from '../support/pool-process.ts'
import { turns } from '../support/virtual-clock.ts'

const ONE = units(1)

describe('the size of a lease', () => {
  it('follows the spending, so that calls do not wait', async () => {
    const { pool, clock, ledger } = new PoolProcess(ledgerOf('100000', { k: '90000' }))
    let waited = 0
    for (let i = 0; i < 600; i++) {
      const answer = pool.reserve({ account: 'acme', key: 'k', amount: ONE })
      if (answer instanceof Promise) waited++
      const held = await answer
      assert.ok(held instanceof Reservation)
      await clock.advance(50)
      settle(held, `req-${i}`, ONE / 2n)
    }
    assert.ok(waited <= 3, `${waited} of 600 calls waited`)
    assert.ok(ledger.changes.length < 60, `${ledger.changes.length} calls to the ledger in 30 s`)
    // Ten a second at half a unit, for about ten seconds.
    const [account] = (await ledger.leases()).filter(({ wallet }) => wallet === 'account:acme')
    assert.ok(account && account.held > units(25) && account.held < units(150), `holds ${account?.held}`)
  })

  it('shrinks when less is spent, and is returned whole when nothing is', async () => {
    const shared = ledgerOf('100000')
    const { pool, clock } = new PoolProcess(shared)
    const busy = await Promise.all(
      Array.from({ length: 100 }, () => pool.reserve({ account: 'acme', key: null, amount: ONE })),
    )
    for (const held of busy) if (held instanceof Reservation) held.release()
    await clock.advance(3000)
    assert.ok((await shared.check()).leased >= units(100))
    for (let second = 0; second < 30; second++) {
      const held = await pool.reserve({ account: 'acme', key: null, amount: ONE })
      await clock.advance(1000)
      if (held instanceof Reservation) settle(held, `req-${second}`, ONE)
    }
    const { leased } = await shared.check()
    assert.ok(leased > 0n && leased < units(30), `holds ${leased}`)
    await clock.advance(13_000)
    assert.equal((await shared.check()).leased, 0n)
    assert.deepEqual(await shared.leases(), [])
  })

  it('is zero if others could use it: free amounts are returned at once when there is little left', async () => {
    const shared = ledgerOf('5')
    const [one, other] = [new PoolProcess(shared), new PoolProcess(shared)]
    const held = await one.admitted(units(4))
    assert.deepEqual(await other.reserve(units(3)), {
      refused: 'quota_lease_exhausted',
      required: units(3),
      available: ONE,
    })
    settle(held, 'req', ONE)
    await turns(20)
    assert.ok((await other.reserve(units(4))) instanceof Reservation)
  })

  it('is forgotten with an unused wallet, for a million wallets', async () => {
    const keys = Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`key-${i}`, '1']))
    const shared = ledgerOf('100000', keys)
    const { pool, clock } = new PoolProcess(shared)
    for (let i = 0; i < 2000; i++) {
      const held = await pool.reserve({ account: 'acme', key: `key-${i}`, amount: units(0.1) })
      if (held instanceof Reservation) held.release()
    }
    assert.ok(pool.stats.leases > 0)
    await clock.advance(15_000)
    assert.deepEqual([pool.stats.leases, pool.stats.wallets], [0, 0])
    assert.deepEqual(await shared.leases(), [])
  })
})
