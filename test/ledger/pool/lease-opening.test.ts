import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { accountWallet } from '../../../lib/ledger/index.ts'
import { ledgerOf, units } from '../support/faulty-ledger.ts'
import { PoolProcess } from '../support/pool-process.ts'

describe('a renewal while the ledger has not answered a change', () => {
  it('does not give up a lease that is being opened', async () => {
    const shared = ledgerOf('100')
    const one = new PoolProcess(shared, { admissionMs: 60_000 })
    one.ledger.faults.set('change', 'waits')
    const held = one.pool.reserve({ account: 'acme', key: null, amount: units(1) })
    await one.clock.advance(7500)
    one.ledger.faults.clear()
    one.ledger.letThrough()
    await held
    assert.equal(one.pool.stats.leasesLost, 0)
    assert.equal((await shared.leases()).length, 1)
    await one.admitted(units(0.5))
    assert.equal((await shared.leases()).length, 1, 'admitted on the lease that was opened')
  })

  it('does not count a lease as lost while it is being closed', async () => {
    const shared = ledgerOf('100')
    const one = new PoolProcess(shared)
    const held = await one.admitted(units(1))
    held.release()
    await one.clock.advance(9500)
    one.ledger.faults.set('change', 'unheard')
    await one.clock.advance(6000)
    assert.equal((await shared.leases()).length, 0, 'closed, of which nobody was told')
    one.ledger.faults.clear()
    await one.clock.advance(8000)
    assert.equal(one.pool.stats.leasesLost, 0)
    const [wallet] = await shared.wallets([accountWallet('acme')])
    assert.equal(wallet?.leased, 0n)
  })
})
