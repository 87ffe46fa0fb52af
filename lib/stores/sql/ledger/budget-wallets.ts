import { budgetOfWallet, isLongPast, longPast } from '../../../ledger/budgets/budget.ts'
import type { WalletId } from '../../../ledger/index.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { BudgetsTable, Database } from '../driver/tables.ts'
import { writePlanned } from '../driver/write-together.ts'
import { noteWrites } from './budget-notices.ts'
import { findWallets } from './sql-ledger-rows.ts'

/** Most wallets of past periods deleted at a time, for each budget. */
const MAX_PRUNED = 100

/** As many as are opened at once are read at once: at midnight each budget of a day has a new wallet. */
const FIND_TERMS = RowStatement.select<BudgetsTable>(
  { id: 'text' },
  'select found.* from given join budgets as found on found.id = given.id where found.deleted = 0',
)

/** So many of the newest wallets of a budget stay: the clock of this process may be far ahead of the others', who spend of them. */
const NEWEST = 10

/** The wallets of budgets between two ids of which nothing is leased, but for the newest. */
const FIND_PAST = RowStatement.select<{ id: WalletId }>(
  { after: 'text', before: 'text', last: 'text' },
  `select found.id from given join wallets as found on found.id > given.after and found.id < given.before
    where found.leased = 0 and exists (
      select 1 from wallets as newer where newer.id > found.id and newer.id < given.last
      order by newer.id limit 1 offset ${NEWEST - 1})`,
)

/** Leaves out those that another process has opened, by the same terms. */
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

const DELETE_NOTICES = RowStatement.delete(
  'budget_notices',
  { wallet: 'text' },
  `found.wallet = given.wallet
    and not exists (select 1 from wallets where wallets.id = given.wallet)`,
  { order: 'wallet' },
)

/**
 * Opens the wallets of budgets for periods without spending, and deletes those of periods long past. A change of a
 * budget waits for it, and then finds them. A budget that was deleted a moment ago only counts.
 */
export function openBudgetWallets(db: Database, wallets: readonly WalletId[]): Promise<void> {
  const budgets = [...new Set(wallets.map((wallet) => budgetOfWallet(wallet) ?? ''))]
  return writePlanned(db, async () => {
    const [open, found, past] = await Promise.all([
      findWallets(db, wallets),
      FIND_TERMS.run(
        db,
        budgets.map((id) => [id]),
      ),
      pastWallets(db, budgets, new Set(wallets)),
    ])
    const missing = [...new Set(wallets)].filter((wallet) => !open.has(wallet))
    if (missing.length === 0) return { writes: [], result: undefined }
    const terms = new Map(found.rows.map((row) => [row.id, row]))
    const termsOf = (wallet: WalletId) => terms.get(budgetOfWallet(wallet) ?? '')
    const used = new Map(missing.map((wallet) => [termsOf(wallet)?.id, termsOf(wallet)?.version]))
    const kept = [...used].flatMap(([id, version]) => (id === undefined ? [] : [[id, version ?? 0n]]))
    const opened = missing.map((id) => [id, termsOf(id)?.hard ?? 0, termsOf(id)?.amount ?? 0n])
    const notices = missing.flatMap((wallet) => {
      const row = termsOf(wallet)
      if (!row) return []
      return [[wallet, { ...row, hard: row.hard !== 0, soft: JSON.parse(row.soft) as number[] }] as const]
    })
    const pruned = past.map((id) => [id])
    return {
      writes: [
        { statement: KEEP_TERMS, rows: kept },
        { statement: OPEN_WALLETS, rows: opened },
        ...noteWrites(notices),
        { statement: DELETE_WALLETS, rows: pruned },
        { statement: DELETE_NOTICES, rows: pruned },
      ],
      result: undefined,
    }
  })
}

/** Returns wallets of budgets that only charges refer to. */
async function pastWallets(
  db: Database,
  budgets: readonly string[],
  used: ReadonlySet<WalletId>,
): Promise<WalletId[]> {
  const now = Date.now()
  const { rows } = await FIND_PAST.run(
    db,
    budgets.map((budget) => longPast(budget, now)),
  )
  const past = rows.map(({ id }) => id).filter((id) => !used.has(id) && isLongPast(id, now))
  return [...Map.groupBy(past, budgetOfWallet).values()].flatMap((own) => own.slice(0, MAX_PRUNED))
}
