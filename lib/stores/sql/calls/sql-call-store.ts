import type { CallLogEntry } from '../../../core/call/index.ts'
import type { CallPage, CallQuery, CallStore } from '../../../core/call-store/index.ts'
import { checkOptions } from '../../../core/options/index.ts'
import { shareOfEntry } from '../../../core/usage/index.ts'
import { cellsOf, typesOf } from '../driver/columns.ts'
import { aDatabase, checkDatabase } from '../driver/database.ts'
import { firstIdOf } from '../driver/id-times.ts'
import { isLocked } from '../driver/postgres/lock-timeout.ts'
import { lockFreeRows } from '../driver/row-locks.ts'
import { RowStatement, type RowWrite } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import { transact } from '../driver/transact.ts'
import { writeTogether } from '../driver/write-together.ts'
import { CALL_COLUMNS } from '../ledger/charge-rows.ts'
import { UsageTally } from '../usage/usage-tally.ts'
import { DELETE_LABELS, labelRows, UNCOUNTED, WRITE_LABELS } from './call-labels.ts'
import { searchCalls } from './search-calls.ts'
import { deleteAnswers, deleteOrphans, readAnswer } from './sql-answer-store.ts'
import { readEntry } from './written-entry.ts'

/** Options of {@link SqlCallStore}. */
export interface SqlCallStoreOptions {
  /**
   * The database for searches, such as a second, read-only handle of the same SQLite file. Then a search through
   * millions of rows does not block writes. Defaults to the database itself.
   */
  searches?: Database
}

/** An entry that was written with a settlement is not replaced: it has the final result of its call. */
const APPEND = RowStatement.insert('calls', typesOf(CALL_COLUMNS), 'on conflict (id) do nothing')

/** No call runs for longer, nor a session of `forward`, so that an older answer without an entry never gets one. */
const RUNNING_MS = 26 * 3_600_000
/** How far back answers without entries are looked for. Older ones are deleted when their entries would be. */
const ORPHANED_WITHIN_MS = 48 * 3_600_000

/**
 * A call store in a database. A look-up by id, and a list of one account's calls, take the same time however many
 * entries there are.
 *
 * @example
 * const store = new SqlCallStore(await openDatabase('sqlite:.data/gateway.db'))
 * app.use('/v1', callLogRoutes({ store }))
 */
export class SqlCallStore implements CallStore {
  readonly #db: Database
  readonly #searches: Database

  constructor(db: Database, options: SqlCallStoreOptions = {}) {
    checkDatabase('SqlCallStore', db)
    checkOptions<SqlCallStoreOptions>('SqlCallStore', options, { searches: aDatabase })
    this.#db = db
    this.#searches = options.searches ?? db
  }

  async append(entries: readonly CallLogEntry[]): Promise<void> {
    try {
      // Almost always none of them is there yet.
      if (await writeTogether(this.#db, appended(entries))) return
    } catch (error) {
      if (!isLocked(error)) throw error
      // Another transaction has locked usage of one account: the others do not wait. `SqlUsageCounter` counts these later.
      if (await writeTogether(this.#db, uncounted(entries))) return
    }
    await together(this.#db, async (trx) => {
      const ids = entries.map(({ id }) => id)
      const known = await trx.selectFrom('calls').select('id').where('id', 'in', ids).execute()
      const left = new Map(entries.toReversed().map((entry) => [entry.id, entry]))
      for (const { id } of known) left.delete(id)
      for (const { statement, rows } of appended([...left.values()])) {
        const { changes } = await statement.run(trx, rows)
        if (statement === APPEND && changes !== rows.length)
          throw new Error('another process appends the same entries')
      }
    })
  }

  async find(id: string): Promise<CallLogEntry | undefined> {
    const row = await this.#db
      .selectFrom('calls')
      .select(['entry', 'response_body'])
      .where('id', '=', id)
      .executeTakeFirst()
    if (!row) return undefined
    const { parts, entry } = shownEntry(row.entry)
    const body = parts > 0 ? await readAnswer(this.#db, id, parts) : row.response_body
    return { ...entry, response_body: body }
  }

  async list(query: CallQuery): Promise<CallPage> {
    const { from, to, before } = query
    const ends = [before, to === undefined ? undefined : firstIdOf(to)].filter((end) => end !== undefined)
    const { entries, next } = await searchCalls(this.#searches, query, {
      from: from === undefined ? undefined : firstIdOf(from),
      before: ends.sort()[0],
    })
    return { entries: entries.map((entry) => shownEntry(entry).entry), ...(next !== undefined && { next }) }
  }

  async prune(before: number, limit: number): Promise<number> {
    const oldest = this.#db
      .selectFrom('calls')
      .select('id')
      .where('id', '<', firstIdOf(before))
      .orderBy('id')
      .limit(limit)
    const pruned = await together(this.#db, async (trx) => {
      const deleted = await trx
        .with('free', () => lockFreeRows(trx, oldest))
        .deleteFrom('calls')
        .where('id', 'in', (eb) => eb.selectFrom('free').select('id'))
        .returning('entry')
        .execute()
      await DELETE_LABELS.run(
        trx,
        deleted.flatMap(({ entry }) => labelRows(readEntry(entry))),
      )
      return deleted.length
    })
    await this.#pruneAnswers(before)
    return pruned
  }

  /** Deletes the answers of deleted entries, and those whose calls ended with their process. */
  async #pruneAnswers(before: number): Promise<void> {
    const now = Date.now()
    const [oldest] = await this.#db.selectFrom('calls').select('id').orderBy('id').limit(1).execute()
    const kept = firstIdOf(before)
    await deleteAnswers(this.#db, '', oldest && oldest.id < kept ? oldest.id : kept)
    await deleteOrphans(this.#db, firstIdOf(now - ORPHANED_WITHIN_MS), firstIdOf(now - RUNNING_MS))
  }
}

/** Returns the writes of new entries, in the order in which all who write such rows lock them. */
function appended(entries: readonly CallLogEntry[]): RowWrite[] {
  const shares = entries.map(shareOfEntry).filter((share) => share !== undefined)
  return [
    { statement: APPEND, rows: entries.map((entry) => cellsOf(CALL_COLUMNS, entry)) },
    { statement: WRITE_LABELS, rows: entries.flatMap(labelRows) },
    new UsageTally(shares).write(),
  ]
}

/** Returns the writes of new entries that usage does not have yet. */
function uncounted(entries: readonly CallLogEntry[]): RowWrite[] {
  const [calls, labels] = appended(entries) as [RowWrite, RowWrite]
  const aside = entries.map(({ id }) => [UNCOUNTED, id])
  return [calls, { ...labels, rows: [...labels.rows, ...aside] }]
}

/** Runs an operation within the transaction that the database is, or in one of its own. */
function together<T>(db: Database, run: (trx: Database) => Promise<T>): Promise<T> {
  return db.isTransaction ? run(db) : transact(db, run)
}

/** Returns an entry as callers see it, and in how many parts its answer is kept apart. */
function shownEntry(text: string): { entry: CallLogEntry; parts: number } {
  const { response_body_parts: parts = 0, ...entry } = readEntry(text)
  return { entry, parts }
}
