import { sql } from 'kysely'
import { newRequestId } from '../../../core/call/index.ts'
import type { CallLogEntry, CallQuery, CallStore } from '../../../middleware/call-log/index.ts'
import { cellsOf, typesOf } from '../driver/columns.ts'
import { isPostgres } from '../driver/is-postgres.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import { writeTogether } from '../driver/write-together.ts'
import { CALL_COLUMNS } from '../ledger/settlement-columns.ts'

/** Options of {@link SqlCallStore}. */
export interface SqlCallStoreOptions {
  /**
   * Where searches are done, such as a second, read-only handle of the same SQLite file: a search that finds little
   * in millions of rows then holds up no write. Defaults to the database itself.
   */
  searches?: Database
}

/** One that was settled knows best what became of its call. */
const APPEND = RowStatement.insert('calls', typesOf(CALL_COLUMNS), 'on conflict (id) do nothing', {
  loose: true,
})

/** The last time that a request id can tell: ten characters of five bits, in milliseconds. */
const LAST_TIME = 32 ** 10 - 1
const TIME_PREFIX = 'req_'.length + 10

/**
 * The call log in a database. A look-up by id, and a list of one account's calls, cost the same however long the log
 * is.
 *
 * @example
 * const store = new SqlCallStore(await openDatabase('sqlite:.data/gateway.db'))
 * app.use('/v1', callLogRoutes({ store }))
 */
export class SqlCallStore implements CallStore {
  readonly #db: Database
  readonly #searches: Database

  constructor(db: Database, options: SqlCallStoreOptions = {}) {
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

  /** {@link CallStore.find} as a part of somebody else's transaction. */
  async findWithin(trx: Database, id: string): Promise<CallLogEntry | undefined> {
    const row = await trx
      .selectFrom('calls')
      .select(['entry', 'response_body'])
      .where('id', '=', id)
      .executeTakeFirst()
    return row && toEntry(row.entry, row.response_body)
  }

  async list(query: CallQuery): Promise<CallLogEntry[]> {
    const { ids, account, model, status, code, to, before, limit } = query
    const oldest = query.from === undefined ? undefined : firstIdOf(query.from)
    let calls = this.#searches.selectFrom('calls').select('entry')
    if (ids !== undefined) calls = calls.where('id', 'in', ids)
    if (account !== undefined) calls = calls.where('account', '=', account)
    if (model !== undefined) calls = calls.where('model', '=', model)
    if (status !== undefined) calls = calls.where('status', '=', status)
    // In words that SQLite finds in the condition of an index: it does not look at the value of a parameter for that.
    if (status !== undefined && status !== 200) calls = calls.where(sql<boolean>`status <> 200`)
    if (code !== undefined) calls = calls.where('error_code', '=', code)
    if (to !== undefined) calls = calls.where('id', '<', firstIdOf(to))
    if (before !== undefined) calls = calls.where('id', '<', before)
    if (oldest !== undefined && !hasIndex(query)) calls = calls.where('id', '>=', oldest)
    const rows = await calls.orderBy('id', 'desc').limit(limit).execute()
    const entries = rows.map(({ entry }) => toEntry(entry, null))
    return oldest === undefined ? entries : entries.filter(({ id }) => id >= oldest)
  }

  async prune(before: number, limit: number): Promise<number> {
    let oldest = this.#db
      .selectFrom('calls')
      .select('id')
      .where('id', '<', firstIdOf(before))
      .orderBy('id')
      .limit(limit)
    // Of several processes that prune at once each takes others.
    if (isPostgres(this.#db)) oldest = oldest.forUpdate().skipLocked()
    const { numDeletedRows } = await this.#db.deleteFrom('calls').where('id', 'in', oldest).executeTakeFirst()
    return Number(numDeletedRows)
  }
}

/** The least id of all that are made at a time or after it. */
function firstIdOf(time: number): string {
  return newRequestId(Math.min(Math.max(0, Math.ceil(time)), LAST_TIME)).slice(0, TIME_PREFIX)
}

/**
 * Whether one index answers all of a query's filters. Such a query reads no more rows than its limit, so that what is
 * too old can be left out afterwards; asked for a span of ids with two ends, SQLite would rather walk through all of
 * the account's calls in that span. That is the way to those that ended with 200, which have no index of their own:
 * nearly all did.
 */
function hasIndex({ account, model, status, code }: CallQuery): boolean {
  if (account === undefined || status === 200) return false
  return [model, status, code].filter((filter) => filter !== undefined).length === 1
}

function toEntry(json: string, responseBody: string | null): CallLogEntry {
  return { ...(JSON.parse(json) as Omit<CallLogEntry, 'response_body'>), response_body: responseBody }
}
