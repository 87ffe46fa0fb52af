import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { MAX_AMOUNT } from '../../../../lib/core/catalog/money.ts'
import type { BudgetPeriod, WalletId } from '../../../../lib/ledger/index.ts'
import { writeTogether } from '../../../../lib/stores/sql/driver/write-together.ts'
import { SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { openHold, refusalOf } from '../../../../lib/stores/sql/ledger/sql-ledger-holds.ts'
import { BACKENDS } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

const HOLDS = 150

/** Small ones meet often at a limit; of the others, two fit 64 bits just so, or do not. */
const figure = fc.oneof(
  { weight: 6, arbitrary: fc.bigInt(0n, 6n) },
  { weight: 1, arbitrary: fc.bigInt(MAX_AMOUNT - 3n, MAX_AMOUNT) },
)
const wallet = fc.record({
  limited: fc.boolean(),
  funds: fc.oneof(figure, fc.bigInt(-3n, 20n)),
  spent: fc.bigInt(0n, 6n),
  leased: figure,
})
const hold = fc.record({
  wallets: fc.array(wallet, { minLength: 3, maxLength: 3 }),
  amount: figure.filter((amount) => amount > 0n),
})

for (const { name, url, skip } of BACKENDS) {
  describe(`holds on wallets of any figures in ${name}`, { skip }, () => {
    it('are opened where no wallet refuses and the sum fits, on each of their wallets or on none', async (t) => {
      const db = await open(t, await url(t))
      const ledger = new SqlLedger(db)
      const outcomes = new Set<string>()
      for (const [i, { wallets, amount }] of fc.sample(hold, { numRuns: HOLDS, seed: 7 }).entries()) {
        const [account, key, of] = [`a${i}`, `k${i}`, `budget:b${i}:1`] as const
        const scope = { account, key: null, user: null, tag: null }
        const refused = 'insufficient_balance' as const
        const budget: BudgetPeriod = { budget: `b${i}`, wallet: of, scope, refused, endsAt: null }
        const ids: WalletId[] = [`account:${account}`, `key:${key}`, of]
        const rows = wallets.map((figures, n) => ({
          ...{ id: ids[n] as WalletId, overrun: 0n },
          ...{ ...figures, limited: Number(figures.limited) },
        }))
        await db.insertInto('wallets').values(rows).execute()
        const asked = { id: `h${i}`, account, key, amount, budgets: [budget] }
        const judged = await refusalOf(db, asked)
        const fits = wallets.every(({ leased }) => leased + amount <= MAX_AMOUNT)
        const expected = judged === undefined && fits
        assert.equal(await writeTogether(db, openHold(asked)), expected, `${i}: ${judged?.refused} ${fits}`)
        assert.deepEqual(
          (await ledger.wallets(ids)).map(({ leased }) => leased),
          wallets.map(({ leased }) => (expected ? leased + amount : leased)),
        )
        const held = db.selectFrom('holds').select('amount').where('request_id', '=', asked.id)
        const ofBudget = db.selectFrom('budget_holds').select('amount').where('request_id', '=', asked.id)
        for (const query of [held, ofBudget])
          assert.deepEqual(await query.execute(), expected ? [{ amount }] : [])
        outcomes.add(`${judged?.refused} ${fits}`)
      }
      assert.ok(outcomes.size >= 5, [...outcomes].join(', '))
    })
  })
}
