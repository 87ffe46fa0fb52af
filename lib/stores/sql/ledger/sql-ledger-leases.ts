import type { LeaseAnswer, LeaseChange, OpenLease, WalletId } from '../../../ledger/index.ts'
import {
  changeLease,
  ENDED_KEPT_MS,
  type LeaseRecord,
  sweepLease,
  type WalletFigures,
} from '../../../ledger/lease.ts'
import { isPostgres } from '../driver/database.ts'
import { isLocked } from '../driver/postgres/lock-timeout.ts'
import { lockFreeRows } from '../driver/row-locks.ts'
import { RowStatement, type RowWrite } from '../driver/row-statement.ts'
import type { Database, LeasesTable } from '../driver/tables.ts'
import { type Planned, RowsHaveChanged, writePlanned } from '../driver/write-together.ts'
import { findLeases, findWallets } from './sql-ledger-rows.ts'

/*
 * Leases are read, changed by the rules of `ledger/lease.ts`, and written if they are still as they were read: no wallet is locked
 * while an answer is on its way. Wallets are locked before leases, both in the order of their ids.
 */

/** Adds to what is leased. Leaves out a limited wallet that no longer has as much. */
const LEASE_OUT = RowStatement.update(
  'wallets',
  { id: 'text', step: 'bigint' },
  'leased = found.leased + given.step',
  `found.id = given.id and (given.step <= 0 or found.limited = 0
    or cast(found.funds as numeric) - found.spent - found.leased >= given.step)`,
)

/** Fails for a lease that an earlier sending of the same change has opened meanwhile. */
const OPEN_LEASES = RowStatement.insert(
  'leases',
  {
    ...{ id: 'text', wallet: 'text', owner: 'text', held: 'bigint', seq: 'bigint', last_moved: 'bigint' },
    ...{ beats: 'bigint', renewed_at: 'bigint' },
  },
  'on conflict (id) do nothing',
)

/** Fails for a lease that was changed meanwhile. Charges may draw on it, unless they would empty one that is closed. */
const CHANGE_LEASES = RowStatement.update(
  'leases',
  {
    ...{
      id: 'text',
      was_seq: 'bigint',
      was_held: 'bigint',
      step: 'bigint',
      seq: 'bigint',
      last_moved: 'bigint',
    },
    ...{ beats: 'bigint', renewed_at: 'bigint', ended: 'text', ended_at: 'bigint' },
  },
  `held = found.held + given.step, seq = given.seq, last_moved = given.last_moved, beats = found.beats + given.beats,
    renewed_at = given.renewed_at, ended = given.ended, ended_at = given.ended_at`,
  `found.id = given.id and found.seq = given.was_seq and found.ended is null
    and (given.step >= 0 or found.held = given.was_held or (given.ended is null and found.held + given.step > 0))`,
)

/** Fails for a lease that was renewed, changed or drawn on meanwhile. */
const SWEEP_LEASES = RowStatement.update(
  'leases',
  { id: 'text', beats: 'bigint', held: 'bigint', at: 'bigint' },
  `held = 0, ended = 'swept', ended_at = given.at`,
  'found.id = given.id and found.beats = given.beats and found.held = given.held and found.ended is null',
)

/**
 * The rows of a busy account are nearly always locked, for a moment each time: a sweep waits for its turn, a tenth of a second at
 * most.
 */
const PATIENCE: RowWrite = {
  statement: RowStatement.steps(
    { ms: 'text' },
    {},
    `select set_config('lock_timeout', given.ms, true) from given`,
    'select ?1',
  ),
  rows: [['100']],
}

/** How long a sweep goes on to wait for the rows of busy accounts. */
const BUSY_MS = 1000

const FREE_WALLETS = RowStatement.select<{ id: WalletId }>(
  { id: 'text' },
  'select found.id from given join wallets as found on found.id = given.id',
  { locks: 'free ones' },
)
const FREE_LEASES = RowStatement.select<LeasesTable>(
  { id: 'text' },
  'select found.* from given join leases as found on found.id = given.id',
  { locks: 'free ones' },
)

/** An open lease; without an id if there is none. */
interface WatchedRow extends Pick<LeasesTable, 'wallet' | 'owner' | 'held' | 'beats' | 'renewed_at'> {
  readonly id: string | null
}

/** Takes or keeps a place of those that watch leases, and returns these; nothing if all places are taken. */
const WATCH_LEASES = RowStatement.steps<WatchedRow>(
  { watcher: 'text', gone_ms: 'bigint' },
  {
    clock: 'select (extract(epoch from clock_timestamp()) * 1000)::bigint as now',
    place: `select found.place from given cross join clock
        join lease_watchers as found on found.owner = given.watcher or abs(now - found.seen_at) > given.gone_ms
      order by found.owner = given.watcher desc nulls last, found.place limit 1
      for update of found skip locked`,
    taken: `update lease_watchers as found set owner = given.watcher, seen_at = now
      from place cross join given cross join clock where found.place = place.place returning found.place`,
  },
  `select leases.id, wallet, leases.owner, held, beats, renewed_at
    from taken left join leases on ended_at is null order by leases.id`,
)

const CHUNK_LEASES = 1000
/** Most ended leases deleted at a time. */
const MAX_DELETED = 1000
const TIDY_EVERY_MS = 60_000
/** After this time, another process takes the place of one that watched leases. By the clock of the database. */
const WATCHER_GONE_MS = 10_000

const renewing = (locks: true | 'free ones') =>
  RowStatement.update<{ id: string }>(
    'leases',
    { id: 'text', at: 'bigint' },
    'beats = found.beats + 1, renewed_at = given.at',
    'found.id = given.id and found.ended_at is null',
    { locks, returning: 'id' },
  )
const RENEW = renewing(true)
/** Leaves out leases that another transaction has locked. */
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

  /** Makes changes in a transaction of their own. */
  change(db: Database, owner: string, changes: readonly LeaseChange[]): Promise<LeaseAnswer[]> {
    return writePlanned(db, () => planChanges(db, owner, changes))
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
      const swept = await sweepAll(db, sweeps)
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
      .with('free', () => lockFreeRows(db, ended))
      .deleteFrom('leases')
      .where('id', 'in', (eb) => eb.selectFrom('free').select('id'))
      .executeTakeFirst()
    // The next renewal goes on. The more leases end, the more there were to renew.
    if (numDeletedRows === BigInt(MAX_DELETED)) this.#tidiedAt = Number.NEGATIVE_INFINITY
  }
}

async function planChanges(
  db: Database,
  owner: string,
  changes: readonly LeaseChange[],
): Promise<Planned<LeaseAnswer[]>> {
  const [wallets, leases] = await Promise.all([
    findWallets(
      db,
      changes.map(({ wallet }) => wallet),
    ),
    findLeases(
      db,
      changes.map(({ lease }) => lease),
    ),
  ])
  const leasedBefore = new Map(Array.from(wallets, ([id, { leased }]) => [id, leased]))
  const before = new Map(Array.from(leases, ([id, lease]) => [id, { ...lease }]))
  const changed = new Set<LeaseRecord>()
  const now = Date.now()
  const result = changes.map((change) => {
    const { answer, lease } = changeLease(
      wallets.get(change.wallet),
      leases.get(change.lease),
      { ...change, owner },
      now,
    )
    if (lease) {
      leases.set(lease.id, lease)
      changed.add(lease)
    }
    return answer
  })
  const steps = Array.from(
    wallets,
    ([id, { leased }]) => [id, leased - (leasedBefore.get(id) ?? 0n)] as const,
  )
  const opened = [...changed].filter(({ id }) => !before.has(id))
  const known = [...changed].flatMap((lease) => {
    const was = before.get(lease.id)
    return was ? [{ lease, was }] : []
  })
  return {
    result,
    writes: [
      { statement: LEASE_OUT, rows: steps.filter(([, step]) => step !== 0n) },
      {
        statement: OPEN_LEASES,
        rows: opened.map(({ id, wallet, held, seq, lastMoved, beats, renewedAt }) => [
          ...[id, wallet, owner, held, seq, lastMoved],
          ...[beats, renewedAt],
        ]),
      },
      {
        statement: CHANGE_LEASES,
        rows: known.map(({ lease, was }) => [
          ...[lease.id, was.seq, was.held, lease.held - was.held, lease.seq, lease.lastMoved],
          ...[lease.beats - was.beats, lease.renewedAt, lease.ended, lease.endedAt],
        ]),
      },
    ],
  }
}

/**
 * Returns the leases that are swept by now. Those whose rows are not locked are swept together, the others one at a time, so
 * that no account is locked while this waits for another.
 */
async function sweepAll(db: Database, sweeps: readonly Sweep[]): Promise<Set<string>> {
  const until = performance.now() + BUSY_MS
  const isFree = await freeAmong(db, sweeps)
  const swept = await writePlanned(db, () => planSweeps(db, sweeps.filter(isFree))).catch(noneIfBusy)
  for (const sweep of sweeps) {
    if (swept.has(sweep.id)) continue
    if (performance.now() >= until) break
    const [id] = await writePlanned(db, () => planSweeps(db, [sweep], [PATIENCE])).catch(noneIfBusy)
    if (id !== undefined) swept.add(id)
  }
  return swept
}

/** @throws the error, unless another transaction has locked or changed the rows: the leases are swept later. */
function noneIfBusy(error: unknown): Set<string> {
  if (isLocked(error) || error instanceof RowsHaveChanged) return new Set()
  throw error
}

async function freeAmong(db: Database, sweeps: readonly Sweep[]): Promise<(sweep: Sweep) => boolean> {
  const { rows: leases } = await FREE_LEASES.run(
    db,
    sweeps.map(({ id }) => [id]),
  )
  const { rows: wallets } = await FREE_WALLETS.run(
    db,
    Array.from(new Set(leases.map(({ wallet }) => wallet)), (wallet) => [wallet]),
  )
  const free = new Set(wallets.map(({ id }) => id))
  const ids = new Set(leases.filter(({ wallet }) => free.has(wallet)).map(({ id }) => id))
  return ({ id }) => ids.has(id)
}

async function planSweeps(
  db: Database,
  sweeps: readonly Sweep[],
  first: readonly RowWrite[] = [],
): Promise<Planned<Set<string>>> {
  const leases = await findLeases(
    db,
    sweeps.map(({ id }) => id),
  )
  const wallets = await findWallets(
    db,
    Array.from(leases.values(), ({ wallet }) => wallet),
  )
  const now = Date.now()
  const swept = new Set<string>()
  const returned = new Map<WalletId, WalletFigures>()
  const rows: (string | bigint | number)[][] = []
  for (const { id, beats } of sweeps) {
    const lease = leases.get(id)
    const wallet = lease && wallets.get(lease.wallet)
    if (!wallet || lease.beats !== beats) continue
    if (lease.ended === null) {
      rows.push([id, beats, lease.held, now])
      const figures = returned.get(wallet.id) ?? { ...wallet, leased: 0n }
      sweepLease(figures, lease, now)
      returned.set(wallet.id, figures)
    }
    if (lease.ended === 'swept') swept.add(id)
  }
  const steps = Array.from(returned, ([id, { leased }]) => [id, leased])
  const writes = [
    { statement: LEASE_OUT, rows: steps },
    { statement: SWEEP_LEASES, rows },
  ]
  return { writes: rows.length > 0 ? [...first, ...writes] : [], result: swept }
}
