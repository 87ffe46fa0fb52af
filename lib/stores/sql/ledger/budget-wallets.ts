import { budgetOfWallet, isLongPast } from '../../../ledger/budgets/budget.ts'
import type { WalletId } from '../../../ledger/index.ts'
import { isPostgres } from '../driver/is-postgres.ts'
import { lockFreeRows } from '../driver/row-locks.ts'
import type { Database } from '../driver/tables.ts'
import { noteThresholds } from './budget-notices.ts'

/** Most wallets of past periods deleted at a time, for each budget. */
const MAX_PRUNED = 100

/**
 * Opens the wallets of budgets for periods that nobody has spent in, and deletes those of periods long past. A change of a
 * budget waits for it, and then finds them. A budget that was deleted a moment ago only counts.
 */
export async function openBudgetWallets(trx: Database, wallets: readonly WalletId[]): Promise<void> {
  const open = await trx.selectFrom('wallets').select('id').where('id', 'in', wallets).execute()
  const known = new Set(open.map(({ id }) => id))
  const missing = wallets.filter((wallet) => !known.has(wallet)).sort()
  if (missing.length === 0) return
  const budgetOf = new Map(missing.map((wallet) => [wallet, budgetOfWallet(wallet) ?? '']))
  let query = trx
    .selectFrom('budgets')
    .selectAll()
    .where('id', 'in', [...new Set(budgetOf.values())])
    .where('deleted', '=', 0)
  if (isPostgres(trx)) query = query.forShare()
  const terms = new Map((await query.orderBy('id').execute()).map((row) => [row.id, row]))
  for (const [id, budget] of budgetOf) {
    const found = terms.get(budget)
    const { hard: limited, amount: funds } = found ?? { hard: 0, amount: 0n }
    const opened = await trx
      .insertInto('wallets')
      .values({ id, limited, funds, spent: 0n, leased: 0n, overrun: 0n })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .returning('id')
      .executeTakeFirst()
    // Otherwise another process was first, and has the row.
    if (!opened) continue
    const soft = found && (JSON.parse(found.soft) as number[])
    if (found && soft) await noteThresholds(trx, id, { ...found, hard: found.hard !== 0, soft })
    await prunePast(trx, budget, wallets)
  }
}

/** Deletes the wallets of a budget that only charges refer to, with what they tell. Locked ones are left for another time. */
async function prunePast(trx: Database, budget: string, used: readonly WalletId[]): Promise<void> {
  const idle = await trx
    .selectFrom('wallets')
    .select('id')
    .where('id', '>', `budget:${budget}:`)
    // The character behind the colon.
    .where('id', '<', `budget:${budget};`)
    .where('leased', '=', 0n)
    .where('id', 'not in', used)
    .execute()
  const past = idle.map(({ id }) => id).filter((id) => isLongPast(id, Date.now()))
  if (past.length === 0) return
  const free = trx
    .selectFrom('wallets')
    .select('id')
    .where('id', 'in', past.slice(0, MAX_PRUNED))
    .where('leased', '=', 0n)
    .orderBy('id')
  const pruned = await trx
    .deleteFrom('wallets')
    .where('id', 'in', lockFreeRows(trx, free))
    .returning('id')
    .execute()
  const ids = pruned.map(({ id }) => id)
  if (ids.length > 0) await trx.deleteFrom('budget_notices').where('wallet', 'in', ids).execute()
}
