import { type RawBuilder, sql } from 'kysely'
import { shareOfCharge, shareOfEntry } from '../../../core/usage/index.ts'
import { budgetOfWallet } from '../../../ledger/budgets/budget.ts'
import type { LeaseChange, Settlement, WalletId } from '../../../ledger/index.ts'
import { accountWallet, walletsOf } from '../../../ledger/wallet.ts'
import { WalletsLocked } from '../../../ledger/wallets-locked.ts'
import { isLocked } from '../driver/postgres/lock-timeout.ts'
import type { Database, Tables } from '../driver/tables.ts'
import { type UsageRowId, UsageTally } from '../usage/usage-tally.ts'

/*
 * Which wallets another transaction has locked, once an operation on many has waited for a lock in vain, and whose that is.
 * Postgres does not report which row that was.
 */

/** As long as another operation of this process may hold a lock: Postgres ends it then. */
const OWN_MS = 5000

/** The wallets that own the rows of each table, by the ids of the rows; those of usage by the account. */
export interface RowsOf {
  readonly byId: Partial<Record<keyof Tables, Map<string, WalletId>>>
  readonly usage: readonly UsageRowId[]
}

/**
 * Runs an operation on many wallets. If it fails to get a lock and the rows are free by then, repeats it.
 *
 * @param rows returns the rows that it locks.
 * @param avoids finds out, once, whether the operation will do without what is locked, from now on.
 * @throws {WalletsLocked} if some of them are locked.
 */
export async function unlessLocked<T>(
  db: Database,
  rows: () => RowsOf,
  operate: () => Promise<T>,
  avoids?: () => Promise<boolean>,
): Promise<T> {
  const until = performance.now() + OWN_MS
  let asked = false
  for (;;) {
    try {
      return await operate()
    } catch (error) {
      if (!isLocked(error)) throw error
      const mayAvoid: boolean = !asked && ((await avoids?.()) ?? false)
      asked = true
      if (mayAvoid) continue
      for (const lock of ['share', 'no key update'] as const) {
        const wallets = await lockedAmong(db, rows(), lock)
        if (wallets.size > 0) throw new WalletsLocked(wallets, { cause: error })
      }
      if (performance.now() >= until) throw error
    }
  }
}

export function rowsOfChanges(changes: readonly LeaseChange[]): RowsOf {
  const wallets = new Map(changes.map(({ wallet }) => [wallet, wallet]))
  const leases = new Map(changes.map(({ lease, wallet }) => [lease, wallet]))
  return { byId: { wallets, leases }, usage: [] }
}

/** Returns the rows of budgets whose wallets are opened. */
export function rowsOfBudgets(wallets: readonly WalletId[]): RowsOf {
  const budgets = new Map(wallets.map((wallet) => [budgetOfWallet(wallet) ?? '', wallet]))
  return { byId: { budgets }, usage: [] }
}

/**
 * Returns the rows of settlements. A locked row locks the account of its settlement.
 *
 * @param logged whether the log entries are among them.
 */
export function rowsOfSettlements(settlements: readonly Settlement[], logged = true): RowsOf {
  const rows = {
    ...{ wallets: new Map(), leases: new Map(), idempotency: new Map(), calls: new Map() },
    budgets: new Map(),
  }
  const usage = new UsageTally()
  for (const settlement of settlements) {
    const { kind, requestId, account, budgets = [], draws, claim } = settlement
    const own = accountWallet(account)
    for (const id of walletsOf(settlement)) rows.wallets.set(id, own)
    for (const id of budgets) rows.budgets.set(budgetOfWallet(id) ?? '', own)
    for (const { lease } of draws) rows.leases.set(lease, own)
    if (claim) rows.idempotency.set(claim.id, own)
    if (logged) rows.calls.set(requestId, own)
    usage.add(shareOfCharge(settlement))
    // A call that is not charged is counted with its entry.
    const entry = kind === 'charge' ? null : settlement.entry
    const left = entry && shareOfEntry(entry)
    if (left) usage.add(left)
  }
  return { byId: rows, usage: usage.ids() }
}

/**
 * Returns whose rows are locked. It asks for all tables in one round trip, because others wait for the answer.
 *
 * @param lock `share` allows others to ask at the same time, and does not find rows with a shared lock.
 */
async function lockedAmong(
  db: Database,
  rows: RowsOf,
  lock: 'share' | 'no key update',
): Promise<Set<WalletId>> {
  const free = sql.raw(`for ${lock} skip locked`)
  const given = Object.entries(rows.byId).filter(([, { size }]) => size > 0)
  const asked = given.map(([name, owners]) => {
    const [table, ids] = [sql.table(name), sql`${[...owners.keys()]}::text[]`]
    return sql`select ${sql.lit(name)} as name, id from ${table} where id = any(${ids}) and id not in
      (select id from (select id from ${table} where id = any(${ids}) ${free}) as free)`
  })
  if (rows.usage.length > 0) asked.push(lockedUsage(rows.usage, lock))
  const locked = await sql<{ name: keyof Tables; id: string }>`${sql.join(asked, sql` union all `)}`.execute(
    db,
  )
  return new Set(
    locked.rows.map(({ name, id }) =>
      name === 'usage' ? accountWallet(id) : (rows.byId[name]?.get(id) as WalletId),
    ),
  )
}

/** Returns the accounts of locked rows of usage, which have no ids. */
function lockedUsage(rows: readonly UsageRowId[], lock: string): RawBuilder<unknown> {
  const cells = [0, 1, 2, 3].map((i) => rows.map((row) => row[i]))
  const given = sql`unnest(${cells[0]}::text[], ${cells[1]}::integer[], ${cells[2]}::bigint[], ${cells[3]}::text[])
    as given(account, grain, hour, digest) join usage using (account, grain, hour, digest)`
  const free = sql`select account, grain, hour, digest from ${given} for ${sql.raw(lock)} of usage skip locked`
  return sql`select 'usage' as name, account as id from ${given} where (account, grain, hour, digest) not in (select * from (${free}) as free)`
}
