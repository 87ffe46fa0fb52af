import { type Logger, quietLogger } from '../../../core/call/index.ts'
import { aLogger, aNumber, checkOptions } from '../../../core/options/index.ts'
import { HOUR_MS } from '../../../core/usage/index.ts'
import { checkDatabase } from '../driver/check-database.ts'
import { firstIdOf, timeOfId } from '../driver/id-times.ts'
import type { Database } from '../driver/tables.ts'
import {
  type CountPage,
  countCalls,
  countCharges,
  countSetAside,
  countVoids,
  labelCalls,
} from './count-older.ts'
import { pruneUsage } from './prune-usage.ts'

/** Options of {@link SqlUsageCounter}. */
export interface SqlUsageCounterOptions {
  /** Logs when rows cannot be counted or deleted. Defaults to the console. */
  logger?: Logger
  /** How long the usage of single users and tags is kept, in milliseconds, to the end of a month. Defaults to 25 months. */
  fineRetentionMs?: number
}

/** The tables in the order in which they are counted, and how old a row can be when an older version writes it. */
const TABLES: readonly (readonly [name: string, count: CountPage, recentMs: number])[] = [
  ['charges', countCharges, 49 * HOUR_MS],
  ['voids', countVoids, 49 * HOUR_MS],
  ['set_aside', countSetAside, Number.POSITIVE_INFINITY],
  ['calls', countCalls, 2 * HOUR_MS],
]

/** How far calls have all their labels. */
const LABELLED = 'labelled'
/** Behind all ids. */
const ALL = '~'

const PAUSE_MS = 20
const MONTHS_25 = 25 * 31 * 24 * HOUR_MS

/**
 * Counts what was charged and logged before usage was counted, and what processes of an older version write during an update;
 * writes what older calls are searched by; deletes the usage of single users and tags when it is too old. It works in the background, at once and every hour, a few
 * rows at a time. Several processes may do so on one database.
 *
 * @example
 * const counter = new SqlUsageCounter(db)
 * process.once('SIGTERM', () => counter.close())
 */
export class SqlUsageCounter {
  readonly #db: Database
  readonly #logger: Logger
  #fineRetentionMs: number
  #timer: NodeJS.Timeout | undefined
  #wake: (() => void) | undefined
  #closed = false
  /** Resolves when the present run has ended. */
  #running: Promise<void>

  constructor(db: Database, options: SqlUsageCounterOptions = {}) {
    checkDatabase('SqlUsageCounter', db)
    checkOptions<SqlUsageCounterOptions>('SqlUsageCounter', options, {
      logger: aLogger,
      fineRetentionMs: aNumber('a positive number of milliseconds', Number.MIN_VALUE),
    })
    this.#db = db
    this.#logger = quietLogger(options.logger)
    this.#fineRetentionMs = options.fineRetentionMs ?? MONTHS_25
    this.#running = this.#run()
  }

  /** Keeps the usage of single users and tags for another time, in milliseconds, from now on. */
  keepFor(fineRetentionMs: number): void {
    if (fineRetentionMs === this.#fineRetentionMs) return
    this.#fineRetentionMs = fineRetentionMs
    this.#running = this.#running.then(() => this.#run())
  }

  /** Resolves when all that was there at the start is counted, or could not be. */
  counted(): Promise<void> {
    return this.#running
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#wake?.()
    await this.#running
  }

  async #run(): Promise<void> {
    clearTimeout(this.#timer)
    if (this.#closed) return
    await this.#try('older calls could not be counted', async () => {
      for (const [name, count, recentMs] of TABLES) await this.#count(name, count, recentMs)
    })
    await this.#try('older calls could not be labelled', () => this.#label())
    await this.#try('old rows could not be deleted', async () => {
      while (!this.#closed && (await pruneUsage(this.#db, Date.now() - this.#fineRetentionMs)))
        await this.#pause()
    })
    if (this.#closed) return
    this.#timer = setTimeout(() => {
      this.#running = this.#run()
    }, HOUR_MS).unref()
  }

  async #try(failure: string, run: () => Promise<void>): Promise<void> {
    try {
      await run()
    } catch (error) {
      if (!this.#closed) this.#logger.error({ err: error }, `usage: ${failure}`)
    }
  }

  async #count(name: string, count: CountPage, recentMs: number): Promise<void> {
    const reached = await this.#markOf(name)
    const recent = firstIdOf(Date.now() - recentMs)
    let from = reached ?? ''
    if (from > recent) from = recent
    await this.#walk(name, count, from)
  }

  /** The second time reaches what processes of an older version have written since the first. Then all calls have theirs. */
  async #label(): Promise<void> {
    const reached = await this.#markOf(LABELLED)
    if (reached === ALL) return
    const isWhole = await this.#walk(LABELLED, labelCalls, reached ?? '')
    const isEmpty = reached === undefined && (await this.#markOf(LABELLED)) === undefined
    if (isWhole && (isEmpty || reached !== undefined)) await saveMark(this.#db, LABELLED, ALL)
  }

  async #markOf(name: string): Promise<string | undefined> {
    const row = await this.#db
      .selectFrom('usage_marks')
      .select('mark')
      .where('name', '=', name)
      .executeTakeFirst()
    return row?.mark
  }

  /**
   * Counts page by page from an id on, up to what was there when it began: while calls are made, the table has no end. Returns
   * false if it was closed before.
   */
  async #walk(name: string, count: CountPage, from: string): Promise<boolean> {
    const begun = Date.now()
    let after = from
    while (!this.#closed) {
      const last = await this.#db.transaction().execute(async (trx) => {
        const counted = await count(trx, after)
        if (counted !== undefined) await saveMark(trx, name, counted)
        return counted
      })
      if (last === undefined || (timeOfId(last) ?? 0) >= begun) return true
      after = last
      await this.#pause()
    }
    return false
  }

  async #pause(): Promise<void> {
    if (this.#closed) return
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      setTimeout(resolve, PAUSE_MS).unref()
    })
  }
}

async function saveMark(trx: Database, name: string, mark: string): Promise<void> {
  await trx
    .insertInto('usage_marks')
    .values({ name, mark })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ mark }))
    .execute()
}
