import { walletsToChange } from '../../../endpoints/admin/budgets/budget-change.ts'
import { budgetWrites, IN_TURN } from '../budgets/budget-writes.ts'
import { toBudget } from '../budgets/sql-budget-store.ts'
import { RowStatement, type RowWrite } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import type { BudgetsTable } from '../ledger/ledger-tables.ts'
import { limitWrite } from '../ledger/sql-ledger-books.ts'

const LIMIT_OPENED = RowStatement.update(
  'wallets',
  { id: 'text', limited: 'bigint' },
  'limited = given.limited',
  'found.id = given.id',
  undefined,
  { loose: true },
)

/**
 * Makes the copies of the budgets of accounts what they are at home, in a transaction. A copy has the amount 0, because its
 * wallet has what home has granted, and tells nobody of thresholds, because home does.
 */
export async function mirrorBudgets(
  trx: Database,
  accounts: readonly string[],
  budgets: readonly BudgetsTable[],
): Promise<void> {
  const due = () => writesFor(trx, accounts, budgets)
  if ((await due()).length === 0) return
  await IN_TURN.statement.run(trx, IN_TURN.rows)
  // Somebody else may have changed them meanwhile.
  for (const { statement, rows } of await due()) await statement.run(trx, rows)
}

async function writesFor(
  trx: Database,
  accounts: readonly string[],
  budgets: readonly BudgetsTable[],
): Promise<RowWrite[]> {
  const copies = await trx
    .selectFrom('budgets')
    .selectAll()
    .where('account', 'in', [...accounts, ''])
    .execute()
  const known = new Map(copies.map((copy) => [copy.id, copy]))
  const wanted = new Set(budgets.map(({ id }) => id))
  const changed = budgets
    .filter(({ id, hard }) => known.get(id)?.hard !== hard || known.get(id)?.deleted !== 0)
    .map((row) => ({ ...row, amount: 0n, soft: '[]', was: known.get(row.id)?.version, deleted: 0 }))
  const gone = copies
    .filter(({ id, deleted }) => deleted === 0 && !wanted.has(id))
    .map((copy) => ({ ...copy, was: copy.version, deleted: 1 }))
  if (changed.length === 0 && gone.length === 0) return []
  const now = Date.now()
  const walletsOf = (row: Omit<BudgetsTable, 'version'>) => walletsToChange(toBudget(row), now)
  return [
    ...budgetWrites(...changed, ...gone),
    {
      statement: LIMIT_OPENED,
      rows: changed.flatMap((row) => walletsOf(row).map((wallet) => [wallet, row.hard])),
    },
    ...gone.flatMap(walletsOf).map((wallet) => limitWrite(wallet, { limited: false })),
  ]
}
