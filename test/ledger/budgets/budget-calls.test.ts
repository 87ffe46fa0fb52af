import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { BudgetPeriod } from '../../../lib/ledger/budgets/budget.ts'
import { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import type { WalletId } from '../../../lib/ledger/wallet.ts'
import { ledgerOf, units } from '../support/faulty-ledger.ts'
import { PoolProcess, settle } from '../support/pool-process.ts'

const NOBODY = { account: 'acme', key: null, user: null, tag: null }
const periodOf = (budget: string): BudgetPeriod => ({
  budget,
  wallet: `budget:${budget}:1` as WalletId,
  scope: { ...NOBODY, tag: `team=${budget}` },
  refused: 'key_quota_exhausted',
  endsAt: null,
})
const PERIODS = ['one', 'two'].map(periodOf)

/** A process, and two budgets with 10 units each of an account with 100. */
async function world(gathers = false) {
  const shared = ledgerOf('100')
  for (const { wallet } of PERIODS) await shared.setLimit(wallet, { limited: true, quota: units(10) })
  const process = new PoolProcess(shared, { gathers })
  return {
    ...{ shared, process },
    async reserve(amount: bigint, budgets: readonly BudgetPeriod[] = PERIODS) {
      return process.pool.reserve({ account: 'acme', key: null, amount, budgets })
    },
    async spent(): Promise<(bigint | undefined)[]> {
      const ids: WalletId[] = ['account:acme', ...PERIODS.map(({ wallet }) => wallet)]
      const wallets = await shared.wallets(ids)
      return ids.map((id) => wallets.find(({ wallet }) => wallet === id)?.spent)
    },
  }
}

describe('a call that counts against budgets', () => {
  for (const gathers of [false, true])
    it(`is charged to each of them, and held by each until then; the ledger ${gathers ? 'gathers' : 'takes each'}`, async () => {
      const { process, reserve, spent, shared } = await world(gathers)
      for (let i = 0; i < 4; i++) {
        const held = await reserve(units(2))
        assert.ok(held instanceof Reservation)
        settle(held, `req-${i}`, units(2))
      }
      await process.clock.advance(1000)
      assert.deepEqual(await spent(), [units(8), units(8), units(8)])
      const [held, refused] = [await reserve(units(2)), await reserve(units(1))]
      assert.ok(held instanceof Reservation)
      assert.ok(!(refused instanceof Reservation))
      assert.ok((await reserve(units(1), [])) instanceof Reservation, 'the account has more')
      held.release()
      assert.ok((await reserve(units(2))) instanceof Reservation)
      assert.deepEqual((await shared.check()).violations, [])
    })

  it('is refused by the budget that does not cover it, as that is spent', async () => {
    const { process, reserve } = await world()
    const held = await reserve(units(9), PERIODS.slice(0, 1))
    assert.ok(held instanceof Reservation)
    settle(held, 'req', units(9))
    await process.clock.advance(1000)
    const refused = await reserve(units(2))
    assert.ok(!(refused instanceof Reservation))
    const { budget } = refused as { budget?: BudgetPeriod }
    assert.deepEqual(
      [refused.refused, refused.required, refused.available, budget?.budget],
      ['key_quota_exhausted', units(2), units(1), 'one'],
    )
    assert.ok((await reserve(units(2), PERIODS.slice(1))) instanceof Reservation)
  })

  it('is returned to each when its charge is undone', async () => {
    const { process, reserve, spent, shared } = await world()
    const held = await reserve(units(9))
    assert.ok(held instanceof Reservation)
    const { resolved } = settle(held, 'req', units(9))
    await process.clock.advance(1000)
    held.revoke(null)
    await process.clock.advance(1000)
    assert.deepEqual(
      [resolved, await spent()],
      [
        ['confirmed', 'voided'],
        [0n, 0n, 0n],
      ],
    )
    assert.ok((await reserve(units(10))) instanceof Reservation)
    assert.deepEqual((await shared.check()).violations, [])
  })

  it('holds its amount on each while it runs, and leaves nothing behind', async () => {
    const { process, reserve, spent, shared } = await world()
    const held = await reserve(units(2))
    assert.ok(held instanceof Reservation)
    await process.clock.advance(60_000)
    const leases = await shared.leases()
    assert.deepEqual(
      leases.map(({ held, wallet }) => [held, wallet]),
      ['account:acme', ...PERIODS.map(({ wallet }) => wallet)].map((wallet) => [units(2), wallet]),
    )
    settle(held, 'req', units(2))
    await process.clock.advance(30_000)
    const { wallets, leasesLost } = process.pool.stats
    assert.deepEqual([wallets, leasesLost, await shared.leases()], [0, 0, []])
    assert.deepEqual(await spent(), [units(2), units(2), units(2)])
  })

  it('is refused while the spent amount is on its way to the ledger, and after that', async () => {
    const { process, reserve } = await world()
    process.ledger.faults.set('settle', 'waits')
    const [first, second] = [await reserve(units(1)), await reserve(units(9))]
    assert.ok(first instanceof Reservation && second instanceof Reservation)
    settle(first, 'req-1', units(1))
    settle(second, 'req-2', units(9))
    const refused = await reserve(units(1))
    assert.ok(!(refused instanceof Reservation))
    process.ledger.mend()
    await process.clock.advance(1000)
    const still = await reserve(units(1))
    assert.ok(!(still instanceof Reservation))
    // The ledger may refuse the first, which would come back.
    assert.deepEqual([refused.refused, still.refused], ['quota_lease_exhausted', 'key_quota_exhausted'])
  })
})
