import { walletsToChange } from '../../../endpoints/admin/budgets/budget-change.ts'
import { nextVersion, toBudget } from '../budgets/sql-budget-store.ts'
import type { Database } from '../driver/tables.ts'
import type { BudgetsTable } from '../ledger/ledger-tables.ts'
import { setLimit } from '../ledger/sql-ledger-books.ts'

/**
 * Makes the copies of the budgets of accounts what they are at home, in a transaction. A copy has the amount 0, because its
 * wallet has what home has granted, and tells nobody of thresholds, because home does.
 */
export async function mirrorBudgets(
  trx: Database,
  accounts: readonly string[],
  budgets: readonly BudgetsTable[],
): Promise<void> {
  const copies = await trx
    .selectFrom('budgets')
    .select(['id', 'hard', 'deleted'])
    .where('account', 'in', [...accounts, ''])
    .execute()
  const known = new Map(copies.map((copy) => [copy.id, copy]))
  const wanted = new Set(budgets.map(({ id }) => id))
  const changed = budgets.filter(
    ({ id, hard }) => known.get(id)?.hard !== hard || known.get(id)?.deleted !== 0,
  )
  const gone = copies.filter(({ id, deleted }) => deleted === 0 && !wanted.has(id))
  if (changed.length === 0 && gone.length === 0) return
  const version = await nextVersion(trx)
  for (const [i, budget] of changed.entries()) {
    const copy = { ...budget, amount: 0n, soft: '[]', version: version + BigInt(i), deleted: 0 }
    const { id, ...columns } = copy
    await trx
      .insertInto('budgets')
      .values({ id, ...columns })
      .onConflict((conflict) => conflict.column('id').doUpdateSet(columns))
      .execute()
    for (const wallet of walletsToChange(toBudget(copy), Date.now()))
      await trx.updateTable('wallets').set({ limited: budget.hard }).where('id', '=', wallet).execute()
  }
  if (gone.length === 0) return
  const ids = gone.map(({ id }) => id)
  const last = version + BigInt(changed.length)
  const ended = await trx
    .updateTable('budgets')
    .set({ deleted: 1, version: last })
    .where('id', 'in', ids)
    .returningAll()
    .execute()
  for (const row of ended)
    for (const wallet of walletsToChange(toBudget(row), Date.now()))
      await setLimit(trx, wallet, { limited: false })
}
