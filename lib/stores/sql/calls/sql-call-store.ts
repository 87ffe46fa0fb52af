import { sql } from 'kysely'
import { newRequestId } from '../../../core/call/index.ts'
import { checkOptions } from '../../../core/options/index.ts'
import type { CallLogEntry, CallQuery, CallStore } from '../../../middleware/call-log/index.ts'
import { aDatabase, checkDatabase } from '../driver/check-database.ts'
import { cellsOf, typesOf } from '../driver/columns.ts'
import { isPostgres } from '../driver/is-postgres.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import { writeTogether } from '../driver/write-together.ts'
import { CALL_COLUMNS } from '../ledger/settlement-columns.ts'
import { deleteAnswers, deleteOrphans, readAnswer } from './sql-answer-store.ts'

/** Options of {@link SqlCallStore}. */
export interface SqlCallStoreOptions {
  /**
   * The database for searches, such as a second, read-only handle of the same SQLite file. Then a search through
   * millions of rows does not block writes. Defaults to the database itself.
   */
  searches?: Database
}

/** An entry that was written with a settlement is not replaced: it has the final result of its call. */
const APPEND = RowStatement.insert('calls', typesOf(CALL_COLUMNS), 'on conflict (id) do nothing', {
  loose: true,
})

/** No call runs for longer, so that an older answer without an entry never gets one. */
const RUNNING_MS = 2 * 3_600_000
/** How far back answers without entries are looked for. Older ones are deleted when their entries would be. */
const ORPHANED_WITHIN_MS = 48 * 3_600_000
/** The last time that a request id can contain: ten characters of five bits, in milliseconds. */
const LAST_TIME = 32 ** 10 - 1
const TIME_PREFIX = 'req_'.length + 10

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
    await writeTogether(this.#db, [
      { statement: APPEND, rows: entries.map((entry) => cellsOf(CALL_COLUMNS, entry)) },
    ])
  }

  find(id: string): Promise<CallLogEntry | undefined> {
    return this.findWithin(this.#db, id)
  }

  /** Does {@link CallStore.find} within another transaction. */
  async findWithin(trx: Database, id: string): Promise<CallLogEntry | undefined> {
    const row = await trx
      .selectFrom('calls')
      .select(['entry', 'response_body'])
      .where('id', '=', id)
      .executeTakeFirst()
    if (!row) return undefined
    const { parts, entry } = toEntry(row.entry)
    const body = parts > 0 ? await readAnswer(trx, id, parts) : row.response_body
    return { ...entry, response_body: body }
  }

  async list(query: CallQuery): Promise<CallLogEntry[]> {
    const { ids, account, model, status, code, to, before, limit } = query
    const oldest = query.from === undefined ? undefined : firstIdOf(query.from)
    let calls = this.#searches.selectFrom('calls').select('entry')
    if (ids !== undefined) calls = calls.where('id', 'in', ids)
    if (account !== undefined) calls = calls.where('account', '=', account)
    if (model !== undefined) calls = calls.where('model', '=', model)
    if (status !== undefined) calls = calls.where('status', '=', status)
    // As literals, so that SQLite matches them with the condition of an index: for that it does not look at
    // parameters.
    if (status !== undefined && status !== 200) calls = calls.where(sql<boolean>`status <> 200`)
    if (code !== undefined) calls = calls.where('error_code', '=', code)
    if (to !== undefined) calls = calls.where('id', '<', firstIdOf(to))
    if (before !== undefined) calls = calls.where('id', '<', before)
    if (oldest !== undefined && !hasIndex(query)) calls = calls.where('id', '>=', oldest)
    const rows = await calls.orderBy('id', 'desc').limit(limit).execute()
    const entries = rows.map(({ entry }) => toEntry(entry).entry)
    return oldest === undefined ? entries : entries.filter(({ id }) => id >= oldest)
  }

  async prune(before: number, limit: number): Promise<number> {
    let oldest = this.#db
      .selectFrom('calls')
      .select('id')
      .where('id', '<', firstIdOf(before))
      .orderBy('id')
      .limit(limit)
    // Processes that prune at the same time each get other rows.
    if (isPostgres(this.#db)) oldest = oldest.forUpdate().skipLocked()
    const { numDeletedRows } = await this.#db.deleteFrom('calls').where('id', 'in', oldest).executeTakeFirst()
    await this.#pruneAnswers(before)
    return Number(numDeletedRows)
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

/** Returns the least id that can be made at a time or later. */
function firstIdOf(time: number): string {
  return newRequestId(Math.min(Math.max(0, Math.ceil(time)), LAST_TIME)).slice(0, TIME_PREFIX)
}

/**
 * Whether one index covers all filters of a query. Such a query reads no more rows than its limit, so that entries that
 * are too old can be left out afterwards. With both ends of a range of ids, SQLite would walk through all of the
 * account's calls in that range instead. It does so for calls that ended with 200, which have no index of their own,
 * because almost all calls did.
 */
function hasIndex({ account, model, status, code }: CallQuery): boolean {
  if (account === undefined || status === 200) return false
  return [model, status, code].filter((filter) => filter !== undefined).length === 1
}

function toEntry(json: string): { entry: CallLogEntry; parts: number } {
  const { response_body_parts: parts = 0, ...entry } = JSON.parse(json) as CallLogEntry
  return { entry: { ...entry, response_body: null }, parts }
}
