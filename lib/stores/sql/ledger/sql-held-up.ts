import { sql } from 'kysely'
import { WalletsHeldUp } from '../../../ledger/held-up.ts'
import type { LeaseChange, Settlement, WalletId } from '../../../ledger/index.ts'
import { accountWallet, keyWallet } from '../../../ledger/wallet.ts'
import { isLocked } from '../driver/postgres/lock-timeout.ts'
import type { Database, Tables } from '../driver/tables.ts'

/*
 * Which wallets somebody else holds up, once an operation on many has waited for a lock in vain. Postgres does not tell
 * which row that was.
 */

/** Returns what the ledger throws for a failure of lease changes. */
export async function heldUpChanges(
  db: Database,
  changes: readonly LeaseChange[],
  error: unknown,
): Promise<unknown> {
  if (!isLocked(error)) return error
  const wallets = new Map(changes.map(({ wallet }) => [wallet, wallet]))
  const leases = new Map(changes.map(({ lease, wallet }) => [lease, wallet]))
  const held = await lockedAmong(db, { wallets, leases })
  return held.size > 0 ? new WalletsHeldUp(held, { cause: error }) : error
}

/** Returns what the ledger throws for a failure of settlements. A locked row holds up the account of its settlement. */
export async function heldUpSettlements(
  db: Database,
  settlements: readonly Settlement[],
  error: unknown,
): Promise<unknown> {
  if (!isLocked(error)) return error
  const wallets: Owners = new Map()
  const [leases, claims, calls] = [new Map(), new Map(), new Map()] as [Owners, Owners, Owners]
  for (const { requestId, account, key, draws, claim } of settlements) {
    const own = accountWallet(account)
    wallets.set(own, own)
    if (key !== null) wallets.set(keyWallet(key), own)
    for (const { lease } of draws) leases.set(lease, own)
    if (claim) claims.set(claim.id, own)
    calls.set(requestId, own)
  }
  const held = await lockedAmong(db, { wallets, leases, idempotency: claims, calls })
  return held.size > 0 ? new WalletsHeldUp(held, { cause: error }) : error
}

/** Whose the rows of a table are, by their ids. */
type Owners = Map<string, WalletId>

/**
 * Returns whose rows are locked. It asks for all tables in one round trip, because others wait for the answer, and shares the
 * rows that are free with whoever asks at the same time.
 */
async function lockedAmong(
  db: Database,
  tables: Partial<Record<keyof Tables, Owners>>,
): Promise<Set<WalletId>> {
  const asked = Object.entries(tables).map(([name, owners]) => {
    const [table, ids] = [sql.table(name), sql`${[...owners.keys()]}::text[]`]
    return sql`select ${sql.lit(name)} as name, id from ${table} where id = any(${ids}) and id not in
      (select id from (select id from ${table} where id = any(${ids}) for share skip locked) as free)`
  })
  const { rows } = await sql<{
    name: keyof Tables
    id: string
  }>`${sql.join(asked, sql` union all `)}`.execute(db)
  return new Set(rows.map(({ name, id }) => tables[name]?.get(id) as WalletId))
}
