import { sql } from 'kysely'
import { WalletsHeldUp } from '../../../ledger/held-up.ts'
import type { LeaseChange, Settlement, WalletId } from '../../../ledger/index.ts'
import { accountWallet, keyWallet } from '../../../ledger/wallet.ts'
import { isLocked } from '../driver/postgres/lock-timeout.ts'
import type { Database, Tables } from '../driver/tables.ts'

/*
 * Which wallets somebody else holds up, once an operation on many has waited for a lock in vain. Postgres does not tell
 * which row that was; the rows are asked for one table after another.
 */

/** Returns what the ledger throws for a failure of lease changes. */
export async function heldUpChanges(
  db: Database,
  changes: readonly LeaseChange[],
  error: unknown,
): Promise<unknown> {
  if (!isLocked(error)) return error
  const held = await lockedAmong(db, 'wallets', new Map(changes.map(({ wallet }) => [wallet, wallet])))
  const leases = new Map(changes.map(({ lease, wallet }) => [lease, wallet]))
  for (const wallet of await lockedAmong(db, 'leases', leases)) held.add(wallet)
  return held.size > 0 ? new WalletsHeldUp(held, { cause: error }) : error
}

/** Returns what the ledger throws for a failure of settlements. A locked row holds up the account of its settlement. */
export async function heldUpSettlements(
  db: Database,
  settlements: readonly Settlement[],
  error: unknown,
): Promise<unknown> {
  if (!isLocked(error)) return error
  const wallets = new Map<string, WalletId>()
  const [leases, claims, calls] = [new Map(), new Map(), new Map()] as Map<string, WalletId>[]
  for (const { requestId, account, key, draws, claim } of settlements) {
    const own = accountWallet(account)
    wallets.set(own, own)
    if (key !== null) wallets.set(keyWallet(key), own)
    for (const { lease } of draws) leases?.set(lease, own)
    if (claim) claims?.set(claim.id, own)
    calls?.set(requestId, own)
  }
  const held = new Set<WalletId>()
  for (const [table, ids] of Object.entries({ wallets, leases, idempotency: claims, calls })) {
    if (!ids) continue
    for (const wallet of await lockedAmong(db, table as keyof Tables, ids)) held.add(wallet)
  }
  return held.size > 0 ? new WalletsHeldUp(held, { cause: error }) : error
}

/** Returns whose rows are locked, of rows by their ids. */
async function lockedAmong(
  db: Database,
  table: keyof Tables,
  of: ReadonlyMap<string, WalletId>,
): Promise<Set<WalletId>> {
  if (of.size === 0) return new Set()
  const ids = [...of.keys()]
  const { rows } = await sql<{ id: string }>`
    with free as (select id from ${sql.table(table)} where id = any(${ids}::text[]) for update skip locked)
    select id from ${sql.table(table)} where id = any(${ids}::text[]) and id not in (select id from free)`.execute(
    db,
  )
  return new Set(rows.map(({ id }) => of.get(id) as WalletId))
}
