import { sql } from 'kysely'
import { type Logger, quietLogger } from '../../../core/call/index.ts'
import { aLogger, aNumber, checkOptions } from '../../../core/options/index.ts'
import { BackgroundLoop } from '../../../core/timing/index.ts'
import { HOUR_MS, MINUTE_MS, MINUTES_KEPT_MS, shareOfEntry } from '../../../core/usage/index.ts'
import { UNCOUNTED } from '../calls/call-labels.ts'
import { readEntry } from '../calls/written-entry.ts'
import { checkDatabase } from '../driver/database.ts'
import { lockFreeRows } from '../driver/row-locks.ts'
import type { Database } from '../driver/tables.ts'
import { transact } from '../driver/transact.ts'
import { addUsage, GRAIN, monthOf, UsageTally } from './usage-tally.ts'

/** The most calls that are counted at once: others may wait for the sums. */
const COUNTED_AT_ONCE = 200

/** Options of {@link SqlUsageCounter}. */
export interface SqlUsageCounterOptions {
  /** Logs when rows cannot be counted or deleted. Defaults to the console. */
  logger?: Logger
  /** How long the usage of single users and tags is kept, in milliseconds, to the end of a month. Defaults to 25 months. */
  keepFineRowsMs?: number
}

const PAUSE_MS = 20
const MONTHS_25 = 25 * 31 * 24 * HOUR_MS

/**
 * Counts the calls that `SqlCallStore` has written while their usage was locked, and deletes the usage of single
 * users and tags, and of minutes, when it is too old. It works in the background, at once and every hour, a few rows at a time. Several
 * processes may do so on one database.
 *
 * @example
 * const counter = new SqlUsageCounter(db)
 * process.once('SIGTERM', () => counter.close())
 */
export class SqlUsageCounter {
  readonly #db: Database
  readonly #logger: Logger
  #keepFineRowsMs: number
  readonly #counting: BackgroundLoop
  /** Resolves when the run that was asked for last has ended. */
  #counted: Promise<void>
  #wake: (() => void) | undefined

  constructor(db: Database, options: SqlUsageCounterOptions = {}) {
    checkDatabase('SqlUsageCounter', db)
    checkOptions<SqlUsageCounterOptions>('SqlUsageCounter', options, {
      logger: aLogger,
      keepFineRowsMs: aNumber('a positive number of milliseconds', Number.MIN_VALUE),
    })
    this.#db = db
    this.#logger = quietLogger(options.logger)
    this.#keepFineRowsMs = options.keepFineRowsMs ?? MONTHS_25
    this.#counting = new BackgroundLoop(() => this.#run(), HOUR_MS)
    this.#counted = this.#counting.runNow()
  }

  /** Keeps the usage of single users and tags for another time, in milliseconds, from now on. */
  keepFor(keepFineRowsMs: number): void {
    if (keepFineRowsMs === this.#keepFineRowsMs) return
    this.#keepFineRowsMs = keepFineRowsMs
    this.#counted = this.#counting.runNow()
  }

  /** Resolves when all calls that were not counted at the start are counted, or could not be. */
  counted(): Promise<void> {
    return this.#counted
  }

  async close(): Promise<void> {
    const closed = this.#counting.close()
    this.#wake?.()
    await closed
  }

  async #run(): Promise<void> {
    await this.#repeat('calls could not be counted', () => countCalls(this.#db))
    await this.#repeat('old rows could not be deleted', () =>
      pruneUsage(this.#db, Date.now() - this.#keepFineRowsMs),
    )
    await this.#repeat('old minutes could not be deleted', () =>
      pruneMinutes(this.#db, Date.now() - MINUTES_KEPT_MS),
    )
  }

  /** @param step returns whether there may be more. */
  async #repeat(failure: string, step: () => Promise<boolean>): Promise<void> {
    try {
      while (!this.#counting.closed && (await step())) await this.#pause()
    } catch (error) {
      if (!this.#counting.closed) this.#logger.error({ err: error }, `usage: ${failure}`)
    }
  }

  async #pause(): Promise<void> {
    if (this.#counting.closed) return
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      setTimeout(resolve, PAUSE_MS).unref()
    })
  }
}

/**
 * Counts some calls that usage does not have yet. The label of a call is deleted in the same transaction, so that it is
 * counted once.
 *
 * @returns whether there may be more.
 */
async function countCalls(db: Database): Promise<boolean> {
  const some = db
    .selectFrom('call_labels')
    .select('id')
    .where('label', '=', UNCOUNTED)
    .orderBy('id')
    .limit(COUNTED_AT_ONCE)
  if ((await some.execute()).length === 0) return false
  return transact(db, async (trx) => {
    const ids = await trx
      .with('free', () => lockFreeRows(trx, some))
      .deleteFrom('call_labels')
      .where('label', '=', UNCOUNTED)
      .where('id', 'in', (eb) => eb.selectFrom('free').select('id'))
      .returning('id')
      .execute()
    if (ids.length === 0) return false
    const rows = await trx
      .selectFrom('calls')
      .select('entry')
      .where(
        'id',
        'in',
        ids.map(({ id }) => id),
      )
      .execute()
    const shares = rows.map(({ entry }) => shareOfEntry(readEntry(entry)))
    await addUsage(trx, new UsageTally(shares.filter((share) => share !== undefined)))
    return ids.length === COUNTED_AT_ONCE
  })
}

const DELETED_AT_ONCE = 500
const FINE = [GRAIN.fineHour, GRAIN.fineDay, GRAIN.fineMonth]

/** The names of the marks of {@link pruneUsage} and {@link pruneMinutes}. */
const FINE_FROM = 'fine_from'
const MINUTES_FROM = 'minutes_from'

/**
 * Deletes usage of single users and tags from before the month of a time, some rows at a time. It is noted first from when on all of it is
 * there.
 *
 * @returns whether there may be more.
 */
export function pruneUsage(db: Database, before: number): Promise<boolean> {
  // A time that is out of range is before all usage.
  const hour = monthOf(Math.floor(Math.max(0, before) / HOUR_MS))
  return pruneRows(db, FINE, FINE_FROM, hour, hour)
}

/** Deletes usage by minutes from before the hour of a time, in the same way. */
export function pruneMinutes(db: Database, before: number): Promise<boolean> {
  const hour = Math.floor(before / HOUR_MS)
  return pruneRows(db, [GRAIN.fineMinute], MINUTES_FROM, hour, (hour * HOUR_MS) / MINUTE_MS)
}

/** @param before the hour, in the unit of the grains. */
async function pruneRows(
  db: Database,
  grains: readonly number[],
  name: string,
  hour: number,
  before: number,
): Promise<boolean> {
  const [oldest] = await db
    .selectFrom('usage')
    .select('hour')
    .where('grain', 'in', grains)
    .where('hour', '<', BigInt(before))
    .limit(1)
    .execute()
  if (!oldest) return false
  const mark = String(hour).padStart(10, '0')
  await sql`insert into usage_marks (name, mark) values (${name}, ${mark})
    on conflict (name) do update set mark = excluded.mark where usage_marks.mark < excluded.mark`.execute(db)
  const { numAffectedRows } = await sql`delete from usage where (account, grain, hour, digest) in
    (select account, grain, hour, digest from usage
      where grain in (${sql.join(grains)}) and hour < ${BigInt(before)} limit ${DELETED_AT_ONCE})`.execute(db)
  return Number(numAffectedRows ?? 0) > 0
}

/** Returns the hour from which on all usage of single users and tags is there, and the one of minutes. */
export async function keptFrom(db: Database): Promise<{ readonly fine: bigint; readonly minutes: bigint }> {
  const marks = await db
    .selectFrom('usage_marks')
    .select(['name', 'mark'])
    .where('name', 'in', [FINE_FROM, MINUTES_FROM])
    .execute()
  const markOf = (name: string) => BigInt(marks.find((mark) => mark.name === name)?.mark ?? 0)
  return { fine: markOf(FINE_FROM), minutes: markOf(MINUTES_FROM) }
}
