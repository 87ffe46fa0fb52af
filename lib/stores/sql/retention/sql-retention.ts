import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { type Logger, quietLogger } from '../../../core/call/index.ts'
import { aLogger, anObjectWith, checkOptions } from '../../../core/options/index.ts'
import { BackgroundLoop } from '../../../core/timing/index.ts'
import { SqlCallStore } from '../calls/sql-call-store.ts'
import { checkDatabase } from '../driver/database.ts'
import { FIRST_ID, firstIdOf, timeOfId } from '../driver/id-times.ts'
import { isLocked, TABLE_LOCK_MS } from '../driver/postgres/lock-timeout.ts'
import {
  hasPartitions,
  keepPartitions,
  nextPeriod,
  PARTITIONED_TABLES,
  type Partition,
  type PartitionedTable,
  partitionsOf,
} from '../driver/postgres/partitions.ts'
import { takeTurn } from '../driver/row-locks.ts'
import type { Database } from '../driver/tables.ts'
import { transact } from '../driver/transact.ts'
import { UpkeepLease, UpkeepLost } from '../driver/upkeep-lease.ts'
import { carrySpending } from '../ledger/carry-spending.ts'
import type { Archive } from './archive.ts'
import { type ExportedTable, exportDays } from './export-days.ts'

const TRIES = 5
const DROP_PAUSE_MS = 1000
/** A retention of so many partitions lets rows go with their partition. */
const MANY = 3

/** The partitions of a table that were dropped. */
export interface Dropped {
  readonly names: readonly string[]
  /** Rows before this id are still to be deleted one by one. */
  readonly before: string
}

/**
 * Drops the partitions of tables all of whose ids are before a given one, where there are any.
 *
 * @param cutoff what is before it has expired.
 * @param keepEntriesMs decides whether the expired rows of a partition that is kept go with it later.
 * @throws an error of Postgres with the code `55P03` if a table is in use all the time.
 */
async function dropPartitions(
  db: Database,
  names: readonly PartitionedTable['name'][],
  cutoff: string,
  keepEntriesMs: number,
): Promise<Dropped> {
  if (!hasPartitions(db)) return { names: [], before: cutoff }
  const dropped: string[] = []
  let before = cutoff
  for (const table of PARTITIONED_TABLES.filter(({ name }) => names.includes(name))) {
    const parts = await partitionsOf(db, table.name)
    for (const part of parts.filter(({ to }) => to !== null && to <= cutoff)) {
      if (part.from === null) continue
      await drop(db, table, { ...part, from: part.from, to: part.to ?? cutoff })
      dropped.push(part.name)
    }
    const kept = parts.find(({ from, to }) => from !== null && from < cutoff && (to === null || to > cutoff))
    if (kept && isShort(kept, table, keepEntriesMs) && (kept.from ?? '') < before) before = kept.from ?? ''
  }
  return { names: dropped, before }
}

function isShort({ from }: Partition, { width }: PartitionedTable, keepEntriesMs: number): boolean {
  const start = timeOfId(from ?? '') ?? 0
  return (nextPeriod(start, width) - start) * MANY <= keepEntriesMs
}

/** Drops a partition. The sum of its charges is carried forward in the same transaction. */
async function drop(
  db: Database,
  { name: table }: PartitionedTable,
  { name, from, to }: { name: string; from: string; to: string },
): Promise<void> {
  await transact(db, async (trx) => {
    await sql`set local lock_timeout = ${sql.lit(TABLE_LOCK_MS)}`.execute(trx)
    if (table === 'charges') {
      await sql`lock table ${sql.table(name)} in share row exclusive mode`.execute(trx)
      await carrySpending(trx, { from, to })
    }
    for (let tries = 1; ; tries++) {
      await sql`savepoint before_drop`.execute(trx)
      try {
        await sql`drop table ${sql.table(name)}`.execute(trx)
        return
      } catch (error) {
        if (!isLocked(error) || tries === TRIES) throw error
        await sql`rollback to savepoint before_drop`.execute(trx)
        await sleep(DROP_PAUSE_MS)
      }
    }
  })
}

/**
 * Deletes some of the oldest charges before an id, with their voids. Their sums are carried forward. Charges whose ids
 * hold no time stay.
 *
 * @returns how many charges were deleted: fewer than the limit if there are no more.
 */
function pruneCharges(db: Database, before: string, limit: number): Promise<number> {
  return transact(db, async (trx) => {
    // Each must see what another has deleted.
    await takeTurn(trx, 'charges')
    const next = await trx
      .selectFrom('charges')
      .select('request_id')
      .where('request_id', '>=', FIRST_ID)
      .where('request_id', '<', before)
      .orderBy('request_id')
      .offset(limit)
      .limit(1)
      .executeTakeFirst()
    const range = { from: FIRST_ID, to: next?.request_id ?? before }
    const carried = await carrySpending(trx, range)
    const { numDeletedRows } = await trx
      .deleteFrom('charges')
      .where('request_id', '>=', FIRST_ID)
      .where('request_id', '<', range.to)
      .executeTakeFirst()
    if (Number(numDeletedRows) !== carried) throw new Error('charges were written while they were deleted')
    return carried
  })
}

/** How long rows are kept, in milliseconds; null: for ever. */
export interface RetentionTimes {
  readonly calls: number | null
  readonly charges: number | null
}

/** Options of {@link SqlRetention}. */
export interface SqlRetentionOptions {
  /** Logs what cannot be exported or deleted, and when that ends. Defaults to the console. */
  logger?: Logger
  /** How long the call log keeps an entry, in milliseconds; null: for ever. Defaults to 30 days. */
  calls?: number | null
  /** How long charges are kept, in milliseconds, at least 31 days; null: for ever. Defaults to null. */
  charges?: number | null
  /** Where rows are written before they are deleted, such as a `FolderArchive`. Defaults to none. */
  archive?: Archive
}

/** The result of a run. */
export interface RetentionRun {
  /** Whether another process was doing it. Then nothing was done. */
  readonly elsewhere: boolean
  /** Rows that were deleted one by one. */
  readonly deleted: Readonly<Record<ExportedTable, number>>
  /** Partitions that were dropped. */
  readonly dropped: readonly string[]
}

const DAY_MS = 86_400_000
/**
 * A charge may be written, or undone, 48 hours after its call began, when a video ends: one that was deleted never comes again.
 * A month leaves time to spare for a process that was cut off.
 */
const MIN_CHARGES_MS = 31 * DAY_MS
/** An entry or a charge of a call may be written for so long after it began: the export of a day comes behind that. */
const WRITTEN_WITHIN_MS = 2 * DAY_MS
/** Some processes do not live for long. */
const FIRST_MS = 1000
const INTERVAL_MS = 10 * 60_000
/** Between pages, so that other queries do not wait long. */
const PAUSE_MS = 50
const PAGE_ROWS = 500

const someTime = {
  be: 'a positive number of milliseconds, or null',
  accepts: (value: unknown) => value === null || (typeof value === 'number' && value > 0),
}

/**
 * Deletes calls and charges of a database when they are too old, soon after the start and then every ten minutes, in one process at
 * a time. Where tables have partitions, it drops these whole, and makes those of the time to come. The sum of deleted charges stays, so that
 * `SqlLedger.check` holds. With an archive, rows are exported first, a file for each day, and kept while that fails.
 *
 * @throws TypeError at construction if an option is unusable.
 * @example
 * const retention = new SqlRetention(db, { calls: 30 * 86_400_000, archive: new FolderArchive('archive') })
 * process.once('SIGTERM', () => retention.close())
 */
export class SqlRetention {
  readonly #db: Database
  readonly #logger: Logger
  readonly #archive: Archive | undefined
  readonly #calls: SqlCallStore
  readonly #lease: UpkeepLease
  #times: RetentionTimes
  readonly #runs: BackgroundLoop
  /** Resolves when the runs that were asked for have ended. */
  #running: Promise<unknown> = Promise.resolve()
  #away = false
  #outages = 0

  constructor(db: Database, options: SqlRetentionOptions = {}) {
    checkDatabase('SqlRetention', db)
    checkOptions<SqlRetentionOptions>('SqlRetention', options, {
      logger: aLogger,
      calls: someTime,
      charges: someTime,
      archive: anObjectWith('an Archive, such as a FolderArchive', 'write'),
    })
    const { calls = 30 * DAY_MS, charges = null } = options
    if (charges !== null && charges < MIN_CHARGES_MS)
      throw new TypeError('SqlRetention: "charges" must be at least 31 days, or null')
    this.#db = db
    this.#logger = quietLogger(options.logger)
    this.#archive = options.archive
    this.#calls = new SqlCallStore(db)
    this.#lease = new UpkeepLease(db, 'retention')
    this.#times = { calls, charges }
    this.#runs = new BackgroundLoop(() => this.#runLogged(), INTERVAL_MS, FIRST_MS)
  }

  /** Whether rows that are too old cannot be exported or deleted. */
  get away(): boolean {
    return this.#away
  }

  /** How many times that state has begun. */
  get outages(): number {
    return this.#outages
  }

  /** Keeps rows for other times from now on. */
  keepFor(times: RetentionTimes): void {
    if (times.calls === this.#times.calls && times.charges === this.#times.charges) return
    this.#times = times
    this.#runs.runIn(PAUSE_MS)
  }

  /**
   * Does at once what is to be done, for a job of its own.
   *
   * @throws an error of the archive or the database. Work done by then stays.
   */
  run(): Promise<RetentionRun> {
    const times = this.#times
    const later = (): void => {
      // New times are soon to be used.
      if (times === this.#times) this.#runs.runIn(INTERVAL_MS)
    }
    later()
    const run = this.#runInTurn()
    run.then(later, later)
    return run
  }

  /** Ends after the present page. */
  async close(): Promise<void> {
    await this.#runs.close()
    await this.#running
  }

  #runInTurn(): Promise<RetentionRun> {
    const run = this.#running.then(() => this.#run())
    this.#running = run.catch(() => {})
    return run
  }

  async #run(): Promise<RetentionRun> {
    const done = { elsewhere: false, deleted: { calls: 0, charges: 0 }, dropped: [] as string[] }
    await keepPartitions(this.#db, this.#logger)
    if (!(await this.#lease.take())) return { ...done, elsewhere: true }
    try {
      for (const table of ['calls', 'charges'] as const) await this.#prune(table, done)
      return done
    } finally {
      await this.#lease.free()
    }
  }

  async #runLogged(): Promise<void> {
    try {
      await this.#runInTurn()
      if (this.#away) this.#logger.info({}, 'retention: old rows are deleted again')
      this.#away = false
    } catch (error) {
      // It is tried again: others use the table, or usage is behind.
      const waits = error instanceof UpkeepLost || isLocked(error)
      if (waits) this.#logger.info({ err: error }, 'retention: old rows are deleted later')
      else if (!this.#runs.closed && !this.#away) {
        this.#outages++
        this.#away = true
        const advice = this.#archive ? ': none is lost; check the folder or bucket of retention.export' : ''
        this.#logger.error({ err: error }, `retention: old rows could not be exported or deleted${advice}`)
      }
    }
  }

  async #prune(
    table: ExportedTable,
    done: { deleted: Record<ExportedTable, number>; dropped: string[] },
  ): Promise<void> {
    const keptMs = this.#times[table]
    if (keptMs === null) return
    const expired = Date.now() - keptMs
    const cutoff = this.#archive ? await this.#export(table, this.#archive, keptMs) : firstIdOf(expired)
    const names = table === 'calls' ? (['calls', 'call_labels', 'answers'] as const) : (['charges'] as const)
    // Another process that has continued meanwhile may export these rows once more.
    await this.#lease.keep(true)
    const { names: dropped, before } = await dropPartitions(this.#db, names, cutoff, keptMs)
    done.dropped.push(...dropped)
    for (;;) {
      await this.#pause()
      const deleted =
        table === 'calls'
          ? await this.#calls.prune(timeOfId(before) ?? 0, PAGE_ROWS)
          : await pruneCharges(this.#db, before, PAGE_ROWS)
      done.deleted[table] += deleted
      if (deleted < PAGE_ROWS) return
    }
  }

  #export(table: ExportedTable, archive: Archive, keptMs: number): Promise<string> {
    const until = Date.now() - Math.max(keptMs, WRITTEN_WITHIN_MS)
    return exportDays(this.#db, table, archive, until, this.#lease, () => this.#pause())
  }

  /** @throws {UpkeepLost} if another process continues it, or this one is to end. */
  async #pause(): Promise<void> {
    if (this.#runs.closed) throw new UpkeepLost('it is closed')
    await this.#lease.keep()
    await sleep(PAUSE_MS)
  }
}
