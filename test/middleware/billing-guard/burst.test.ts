import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { ledgerOf, units } from '../../ledger/support/faulty-ledger.ts'
import { PoolProcess, tally } from '../../ledger/support/pool-process.ts'
import { turns } from '../../ledger/support/virtual-clock.ts'

const ONE = units(1)

describe('a burst of calls', () => {
  it('makes one call to the ledger, for account and key together', async () => {
    const { pool, ledger } = new PoolProcess(ledgerOf('1000', { k: '500' }))
    const { admitted, refused } = await tally(
      Array.from({ length: 300 }, () => pool.reserve({ account: 'acme', key: 'k', amount: ONE })),
    )
    assert.deepEqual([admitted.length, refused.length], [300, 0])
    assert.equal(ledger.changes.length, 1)
    assert.equal(ledger.changes[0]?.length, 2)
  })

  it('lets through exactly what fits, and says of the others that it is held at the moment', async () => {
    const shared = ledgerOf('90')
    const { pool, ledger } = new PoolProcess(shared)
    const { admitted, refused } = await tally(
      Array.from({ length: 300 }, () => pool.reserve({ account: 'acme', key: null, amount: ONE })),
    )
    assert.equal(admitted.length, 90)
    assert.deepEqual([...new Set(refused.map((each) => each.refused))], ['quota_lease_exhausted'])
    assert.ok(ledger.changes.length <= 3, `${ledger.changes.length} calls to the ledger`)
    assert.equal((await shared.check()).leased, units(90))
  })

  it('of two processes lets through what fits, and never more', async () => {
    const shared = ledgerOf('90')
    const pools = [new PoolProcess(shared), new PoolProcess(shared)]
    const answers: ReturnType<PoolProcess['pool']['reserve']>[] = []
    for (let i = 0; i < 300; i++) {
      const { pool } = pools[i % 2]!
      answers.push(pool.reserve({ account: 'acme', key: null, amount: ONE }))
      if (i % 7 === 0) await turns(1)
    }
    const { admitted, refused } = await tally(answers)
    assert.ok(admitted.length >= 86 && admitted.length <= 90, `${admitted.length} were let through`)
    assert.deepEqual([...new Set(refused.map((each) => each.refused))], ['quota_lease_exhausted'])
    assert.deepEqual((await shared.check()).violations, [])
  })

  it('refuses at once what is too much, and lets smaller calls pass', async () => {
    const { pool } = new PoolProcess(ledgerOf('10'))
    const [large, small] = await Promise.all([
      pool.reserve({ account: 'acme', key: null, amount: units(11) }),
      pool.reserve({ account: 'acme', key: null, amount: units(9) }),
    ])
    assert.deepEqual(large, { refused: 'insufficient_balance', required: units(11), available: units(10) })
    assert.ok(small instanceof Reservation)
  })

  it('judges the key before the account', async () => {
    const { pool } = new PoolProcess(ledgerOf('3', { k: '2' }))
    const refused = await pool.reserve({ account: 'acme', key: 'k', amount: units(5) })
    assert.deepEqual(refused, { refused: 'key_quota_exhausted', required: units(5), available: units(2) })
    assert.ok((await pool.reserve({ account: 'acme', key: null, amount: units(3) })) instanceof Reservation)
  })

  it('serves the keys of an account in turn', async () => {
    const { pool } = new PoolProcess(ledgerOf('90', { greedy: null, modest: null }))
    const greedy = Array.from({ length: 300 }, () =>
      pool.reserve({ account: 'acme', key: 'greedy', amount: ONE }),
    )
    const modest = Array.from({ length: 10 }, () =>
      pool.reserve({ account: 'acme', key: 'modest', amount: ONE }),
    )
    assert.equal((await tally(modest)).admitted.length, 10)
    assert.equal((await tally(greedy)).admitted.length, 80)
  })

  it('whose amounts no ledger can hold is refused, and delays no other call', async () => {
    const { pool } = new PoolProcess(ledgerOf('90'))
    const [absurd, usual] = await Promise.all([
      pool.reserve({ account: 'acme', key: null, amount: 2n ** 80n }),
      pool.reserve({ account: 'acme', key: null, amount: ONE }),
    ])
    assert.equal('refused' in absurd && absurd.refused, 'insufficient_balance')
    assert.ok(usual instanceof Reservation)
  })

  it('of an account that the ledger does not know is refused', async () => {
    const { pool } = new PoolProcess(ledgerOf('90'))
    const refused = await pool.reserve({ account: 'stranger', key: null, amount: ONE })
    assert.deepEqual(refused, { refused: 'insufficient_balance', required: ONE, available: 0n })
  })
})
