import type { LeaseAnswer, LeaseChange, OpenLease, WalletId } from '../../../ledger/index.ts'
import { changeLease, ENDED_KEPT_MS, type LeaseRecord, sweepLease } from '../../../ledger/lease.ts'
import { isPostgres } from '../driver/is-postgres.ts'
import { isLocked } from '../driver/postgres/lock-timeout.ts'
import { lockFreeRows } from '../driver/row-locks.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import { isNotWritten } from '../driver/write-together.ts'
import { CHANGE_LEASES, SWEEP_BUSY_LEASE, SWEEP_LEASES, WATCH_LEASES } from './lease-statements.ts'
import { freeAbandonedHolds } from './sql-ledger-holds.ts'
import { type LockedWallet, lockLeases, lockWallets, saveLeases, saveWallets } from './sql-ledger-rows.ts'

const CHUNK_LEASES = 1000
/** Most ended leases deleted at a time. */
const MAX_DELETED = 1000
const TIDY_EVERY_MS = 60_000
/** After this time, another process takes the place of one that watched leases. By the clock of the database. */
const WATCHER_GONE_MS = 10_000
/** How long a sweep goes on to wait for the rows of busy accounts. */
const BUSY_MS = 1000

const renewing = (locks: true | 'free ones') =>
  RowStatement.update<{ id: string }>(
    'leases',
    { id: 'text', at: 'bigint' },
    'beats = found.beats + 1, renewed_at = given.at',
    'found.id = given.id and found.ended_at is null',
    'id',
    { locks },
  )
const RENEW = renewing(true)
/** Leaves out leases that somebody else has locked. */
const RENEW_FREE = renewing('free ones')

interface Sweep {
  readonly id: string
  readonly beats: number
  resolve(swept: boolean): void
  reject(error: unknown): void
}

/** Takes, returns, renews and sweeps the leases of processes. */
export class Leasing {
  #tidiedAt = Number.NEGATIVE_INFINITY
  readonly #sweeps: Sweep[] = []

  /** Makes changes in a transaction of their own: on Postgres, nearly always, in one round trip. */
  async change(db: Database, owner: string, changes: readonly LeaseChange[]): Promise<LeaseAnswer[]> {
    if (isPostgres(db) && areOfDifferentRows(changes)) {
      try {
        return await changeAtOnce(db, owner, changes)
      } catch (error) {
        if (!isNotWritten(error)) throw error
      }
    }
    return db.transaction().execute((trx) => changeWithin(trx, owner, changes))
  }

  async renew(db: Database, leases: readonly string[], at: number): Promise<Set<string>> {
    await this.#tidy(db)
    const kept = new Set<string>()
    const ids = [...new Set(leases)]
    for (let i = 0; i < ids.length; i += CHUNK_LEASES) {
      const chunk = ids.slice(i, i + CHUNK_LEASES).map((id) => [id, at])
      const { rows } = await RENEW.run(db, chunk).catch((error: unknown) => {
        if (isLocked(error)) return RENEW_FREE.run(db, chunk)
        throw error
      })
      for (const { id } of rows) kept.add(id)
    }
    return kept
  }

  async list(db: Database): Promise<OpenLease[]> {
    const rows = await db
      .selectFrom('leases')
      .select(['id', 'wallet', 'owner', 'held', 'beats', 'renewed_at'])
      .where('ended_at', 'is', null)
      .orderBy('id')
      .execute()
    return rows.map(({ renewed_at, ...lease }) => ({ ...lease, renewedAt: Number(renewed_at) }))
  }

  /** Lists all open leases for a process that has one of the places of those that watch. SQLite's processes are few: all have. */
  async watch(db: Database, watcher: string): Promise<OpenLease[] | undefined> {
    if (!isPostgres(db)) return this.list(db)
    const { rows } = await WATCH_LEASES.run(db, [[watcher, WATCHER_GONE_MS]])
    if (rows.length === 0) return undefined
    return rows.flatMap(({ id, renewed_at, ...lease }) =>
      id === null ? [] : [{ id, ...lease, renewedAt: Number(renewed_at) }],
    )
  }

  /** Sweeps with all others that are asked for in this turn of the event loop, in one transaction. */
  sweep(db: Database, id: string, beats: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#sweeps.push({ id, beats, resolve, reject })
      if (this.#sweeps.length === 1) setImmediate(() => void this.#sweepAll(db, this.#sweeps.splice(0)))
    })
  }

  async #sweepAll(db: Database, sweeps: readonly Sweep[]): Promise<void> {
    try {
      const swept = await (isPostgres(db)
        ? sweepAtOnce(db, sweeps)
        : db.transaction().execute((trx) => sweepWithin(trx, sweeps)))
      for (const { id, resolve } of sweeps) resolve(swept.has(id))
    } catch (error) {
      for (const { reject } of sweeps) reject(error)
    }
  }

  async #tidy(db: Database): Promise<void> {
    const now = performance.now()
    if (now - this.#tidiedAt < TIDY_EVERY_MS) return
    this.#tidiedAt = now
    const ended = db
      .selectFrom('leases')
      .select('id')
      .where('ended_at', '<', BigInt(Date.now() - ENDED_KEPT_MS))
      .limit(MAX_DELETED)
    const { numDeletedRows } = await db
      .deleteFrom('leases')
      .where('id', 'in', lockFreeRows(db, ended))
      .executeTakeFirst()
    const isMore = await freeAbandonedHolds(db)
    // The next renewal goes on. The more leases end, the more there were to renew.
    if (isMore || numDeletedRows === BigInt(MAX_DELETED)) this.#tidiedAt = Number.NEGATIVE_INFINITY
  }
}

function areOfDifferentRows(changes: readonly LeaseChange[]): boolean {
  const rows = new Set(changes.flatMap(({ lease, wallet }) => [`lease ${lease}`, `wallet ${wallet}`]))
  return rows.size === 2 * changes.length
}

async function changeAtOnce(
  db: Database,
  owner: string,
  changes: readonly LeaseChange[],
): Promise<LeaseAnswer[]> {
  const now = Date.now()
  const { rows } = await CHANGE_LEASES.run(
    db,
    changes.map(({ lease, wallet, seq, change }) =>
      change.kind === 'take'
        ? [lease, wallet, owner, seq, 1, change.need, change.want, now]
        : [lease, wallet, owner, seq, 0, 0n, change.amount, now],
    ),
  )
  const byLease = new Map(rows.map((row) => [row.lease, row]))
  return changes.map(({ lease }) => {
    const row = byLease.get(lease)
    if (!row) return { moved: 0n, lost: false, open: false, state: undefined }
    const { moved, lost, open, limited, funds, spent, leased } = row
    return { moved, lost, open, state: { limited: limited !== 0, funds, spent, leased } }
  })
}

async function changeWithin(
  trx: Database,
  owner: string,
  changes: readonly LeaseChange[],
): Promise<LeaseAnswer[]> {
  const wallets = await lockWallets(
    trx,
    changes.map(({ wallet }) => wallet),
  )
  const leases = await lockLeases(
    trx,
    changes.map(({ lease }) => lease),
  )
  const now = Date.now()
  const changedWallets = new Set<LockedWallet>()
  const changedLeases = new Set<string>()
  const answers = changes.map((change) => {
    const wallet = wallets.get(change.wallet)
    const { answer, lease } = changeLease(wallet, leases.get(change.lease), { ...change, owner }, now)
    if (wallet && lease) {
      leases.set(lease.id, lease)
      changedLeases.add(lease.id)
      changedWallets.add(wallet)
    }
    return answer
  })
  await saveLeases(
    trx,
    [...leases.values()].filter(({ id }) => changedLeases.has(id)),
  )
  await saveWallets(trx, changedWallets)
  return answers
}

async function sweepAtOnce(db: Database, sweeps: readonly Sweep[]): Promise<Set<string>> {
  const now = Date.now()
  const until = performance.now() + BUSY_MS
  const rows = sweeps.map(({ id, beats }) => [id, beats, now])
  const swept = new Set((await SWEEP_LEASES.run(db, rows)).rows.map(({ id }) => id))
  // One at a time, so that no account is locked while this waits for another.
  for (const [i, { id }] of sweeps.entries()) {
    if (swept.has(id)) continue
    if (performance.now() >= until) break
    const busy = await SWEEP_BUSY_LEASE.run(db, rows.slice(i, i + 1)).catch((error: unknown) => {
      if (isLocked(error)) return { rows: [] }
      throw error
    })
    if (busy.rows.length > 0) swept.add(id)
  }
  return swept
}

/** Returns the leases that are swept by now, for SQLite, which has one writer. */
async function sweepWithin(trx: Database, sweeps: readonly Sweep[]): Promise<Set<string>> {
  const ids = sweeps.map(({ id }) => id)
  const found = await trx.selectFrom('leases').select('wallet').distinct().where('id', 'in', ids).execute()
  const wallets = await lockWallets(
    trx,
    found.map(({ wallet }) => wallet),
  )
  const leases = await lockLeases(trx, ids)
  const swept = new Set<string>()
  const ended: LeaseRecord[] = []
  const changed = new Map<WalletId, LockedWallet>()
  const now = Date.now()
  for (const { id, beats } of sweeps) {
    const lease = leases.get(id)
    const wallet = lease && wallets.get(lease.wallet)
    if (!wallet || lease.beats !== beats) continue
    if (!lease.ended) {
      sweepLease(wallet, lease, now)
      ended.push(lease)
      changed.set(wallet.id, wallet)
    }
    if (lease.ended === 'swept') swept.add(id)
  }
  await saveLeases(trx, ended)
  await saveWallets(trx, changed.values())
  return swept
}
