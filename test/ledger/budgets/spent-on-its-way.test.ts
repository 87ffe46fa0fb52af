import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { BudgetPeriod } from '../../../lib/ledger/budgets/budget.ts'
import { MemoryLedger } from '../../../lib/ledger/index.ts'
import { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { units } from '../support/faulty-ledger.ts'
import { TEAM } from '../support/one-bill.ts'
import { PoolProcess, settle } from '../support/pool-process.ts'
import { turns } from '../support/virtual-clock.ts'

const OTHER: BudgetPeriod = { ...TEAM, budget: 'other', wallet: 'budget:other:1' }

/** A process in which an account, a key or a budget has 10 units, and whatever else pays has 100. */
async function scarce(payer: 'account' | 'key' | 'budget') {
  const of = (name: string) => (name === payer ? '10' : '100')
  const shared = new MemoryLedger({
    accounts: [{ id: 'acme', balance: of('account') }],
    keys: [
      { id: 'k', quota: of('key') },
      { id: 'fresh', quota: '100' },
    ],
  })
  await shared.setLimit(TEAM.wallet, { limited: true, quota: units(payer === 'budget' ? 10 : 100) })
  await shared.setLimit(OTHER.wallet, { limited: true, quota: units(100) })
  const process = new PoolProcess(shared)
  const claim = { account: 'acme', key: 'k', budgets: [TEAM] }
  return {
    ...{ process, claim, pool: process.pool },
    reserve: async (amount: number) => process.pool.reserve({ ...claim, amount: units(amount) }),
    async held(amount: number): Promise<Reservation> {
      const held = await process.pool.reserve({ ...claim, amount: units(amount) })
      assert.ok(held instanceof Reservation)
      return held
    },
  }
}

const CODES = {
  account: 'insufficient_balance',
  key: 'key_quota_exhausted',
  budget: 'key_quota_exhausted',
} as const

for (const payer of ['account', 'key', 'budget'] as const)
  describe(`money that is spent of a scarce ${payer}, and not yet sent to the ledger`, () => {
    /** One charge of nothing that the ledger has and does not answer, and one that waits behind it. */
    const waiting = async (amount: number) => {
      const world = await scarce(payer)
      const [first, second] = [await world.held(0), await world.held(amount)]
      world.process.ledger.faults.set('settle', 'waits')
      settle(first, 'flies', 0n)
      settle(second, 'waits', units(amount))
      return { ...world, second }
    }

    it('is not available: a call is refused, and receives the amount that is left', async () => {
      const { reserve } = await waiting(9)
      const refused = await reserve(2)
      assert.ok(!(refused instanceof Reservation))
      const told = [refused.refused, refused.required, refused.available, refused.budget?.budget]
      assert.deepEqual(told, [CODES[payer], units(2), units(1), payer === 'budget' ? 'team' : undefined])
    })

    for (const isDropped of [true, false])
      it(`leaves the wallet apparently empty if it is all spent, until it is ${isDropped ? 'dropped' : 'sent and reported again'}`, async () => {
        const { pool, claim, second, process, reserve } = await waiting(10)
        assert.equal(pool.seemsEmpty(claim), true)
        if (isDropped) {
          assert.equal(second.revoke(null), 'dropped')
          assert.equal(pool.seemsEmpty(claim), false)
        } else {
          process.ledger.mend()
          await turns()
          // The figures that the ledger sent are from before.
          assert.equal(pool.seemsEmpty(claim), false)
          assert.ok(!((await reserve(1)) instanceof Reservation))
          assert.equal(pool.seemsEmpty(claim), true)
        }
        process.ledger.mend()
        await process.clock.advance(60_000)
        assert.equal(pool.stats.wallets, 0, 'wallets that nobody uses are forgotten')
      })
  })

describe('whether wallets seem to be empty', () => {
  it('is unknown until the ledger has reported each of them', async () => {
    const { pool, claim, held } = await scarce('account')
    assert.equal(pool.seemsEmpty(claim), undefined)
    ;(await held(1)).release()
    assert.equal(pool.seemsEmpty(claim), false)
    assert.equal(pool.seemsEmpty({ account: 'acme', key: null }), false)
    assert.equal(pool.seemsEmpty({ account: 'globex', key: null }), undefined)
    assert.equal(pool.seemsEmpty({ ...claim, key: 'fresh' }), undefined)
    assert.equal(pool.seemsEmpty({ ...claim, budgets: [TEAM, OTHER] }), undefined)
  })

  for (const payer of ['account', 'key', 'budget'] as const)
    it(`is known if it has reported an empty one: the ${payer}`, async () => {
      const { pool, claim, held } = await scarce(payer)
      const all = await held(10)
      assert.equal(pool.seemsEmpty(claim), false, 'it is only held')
      await settle(all, 'req', units(10)).outcome
      assert.ok(!((await pool.reserve({ ...claim, amount: units(1) })) instanceof Reservation))
      assert.equal(pool.seemsEmpty(claim), true)
      // The other wallets may have money or not.
      assert.equal(pool.seemsEmpty({ ...claim, budgets: [TEAM, OTHER] }), true)
      assert.equal(pool.seemsEmpty({ account: 'acme', key: null }), payer === 'account')
    })
})
