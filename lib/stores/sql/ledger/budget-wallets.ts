import { budgetOfWallet, isLongPast } from '../../../ledger/budgets/budget.ts'
import type { WalletId } from '../../../ledger/index.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import { writePlanned } from '../driver/write-together.ts'
import { noteWrites } from './budget-notices.ts'

/** Most wallets of past periods deleted at a time, for each budget. */
const MAX_PRUNED = 100

/** Leaves out those that somebody else has opened, by the same terms. */
const OPEN_WALLETS = RowStatement.insert(
  'wallets',
  { id: 'text', limited: 'bigint', funds: 'bigint' },
  'on conflict (id) do nothing',
  { constants: { spent: 0, leased: 0, overrun: 0 }, loose: true },
)

/** Fails if the terms of a budget have changed; else they stay until its wallet is open. */
const KEEP_TERMS = RowStatement.keep(
  'budgets',
  { id: 'text', version: 'bigint' },
  'found.id = given.id and found.version = given.version',
)

const DELETE_WALLETS = RowStatement.delete(
  'wallets',
  { id: 'text' },
  'found.id = given.id and found.leased = 0',
  { locks: 'free ones' },
)

/** What belongs to wallets: what is told of them, and their shares in other regions or of them. */
const DELETE_REST = ['budget_notices', 'shares', 'lent_shares'].map((table) =>
  RowStatement.delete(
    table,
    { wallet: 'text' },
    `found.wallet = given.wallet
      and not exists (select 1 from wallets where wallets.id = given.wallet)`,
    { order: 'wallet' },
  ),
)

/**
 * Opens the wallets of budgets for periods that nobody has spent in, and deletes those of periods long past. A change of a
 * budget waits for it, and then finds them. A budget that was deleted a moment ago only counts.
 */
export function openBudgetWallets(db: Database, wallets: readonly WalletId[]): Promise<void> {
  const budgets = [...new Set(wallets.map((wallet) => budgetOfWallet(wallet) ?? ''))]
  return writePlanned(db, async () => {
    const [open, found, past] = await Promise.all([
      db.selectFrom('wallets').select('id').where('id', 'in', wallets).execute(),
      db.selectFrom('budgets').selectAll().where('id', 'in', budgets).where('deleted', '=', 0).execute(),
      Promise.all(budgets.map((budget) => pastWallets(db, budget, wallets))),
    ])
    const known = new Set(open.map(({ id }) => id))
    const missing = [...new Set(wallets)].filter((wallet) => !known.has(wallet))
    if (missing.length === 0) return { writes: [], result: undefined }
    const terms = new Map(found.map((row) => [row.id, row]))
    const termsOf = (wallet: WalletId) => terms.get(budgetOfWallet(wallet) ?? '')
    const used = new Map(missing.map((wallet) => [termsOf(wallet)?.id, termsOf(wallet)?.version]))
    const kept = [...used].flatMap(([id, version]) => (id === undefined ? [] : [[id, version ?? 0n]]))
    const opened = missing.map((id) => [id, termsOf(id)?.hard ?? 0, termsOf(id)?.amount ?? 0n])
    const notes = missing.flatMap((wallet) => {
      const row = termsOf(wallet)
      const soft = row && (JSON.parse(row.soft) as number[])
      // The copy of a budget whose home, another region, tells of it has no amount.
      return row && soft && row.amount > 0n ? noteWrites(wallet, { ...row, hard: row.hard !== 0, soft }) : []
    })
    const pruned = past.flat().map((id) => [id])
    return {
      writes: [
        { statement: KEEP_TERMS, rows: kept },
        { statement: OPEN_WALLETS, rows: opened },
        ...notes,
        { statement: DELETE_WALLETS, rows: pruned },
        ...DELETE_REST.map((statement) => ({ statement, rows: pruned })),
      ],
      result: undefined,
    }
  })
}

/** Returns the wallets of a budget that only charges refer to. */
async function pastWallets(db: Database, budget: string, used: readonly WalletId[]): Promise<WalletId[]> {
  const idle = await db
    .selectFrom('wallets')
    .select('id')
    .where('id', '>', `budget:${budget}:`)
    // The character behind the colon.
    .where('id', '<', `budget:${budget};`)
    .where('leased', '=', 0n)
    .where('id', 'not in', used)
    .execute()
  const past = idle.map(({ id }) => id).filter((id) => isLongPast(id, Date.now()))
  return past.slice(0, MAX_PRUNED) as WalletId[]
}
