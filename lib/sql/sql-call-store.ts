import { CompiledQuery } from 'kysely'
import { newRequestId } from '../call/index.ts'
import type { CallLogEntry, CallQuery, CallStore } from '../call-log/index.ts'
import { isPostgres } from './is-postgres.ts'
import type { CallsTable, Database } from './tables.ts'

/** Options of {@link SqlCallStore}. */
export interface SqlCallStoreOptions {
  /**
   * Where searches are done, such as a second, read-only handle of the same SQLite file: a search that finds little
   * in millions of rows then holds up no write. Defaults to the database itself.
   */
  searches?: Database
}

const COLUMNS = [
  'id',
  'account',
  'key',
  'model',
  'status',
  'error_code',
  'created_at',
  'entry',
  'response_body',
] as const satisfies (keyof CallsTable)[]

/** Far below the parameters one statement may have, and little enough to be handed to another thread at once. */
const CHUNK_ROWS = 250

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
  /** The text of the insert for each number of rows, as wording one takes longer than filling it in. */
  readonly #inserts = new Map<number, string>()
  readonly #replacements = new Map<number, string>()

  constructor(db: Database, options: SqlCallStoreOptions = {}) {
    this.#db = db
    this.#searches = options.searches ?? db
  }

  async append(entries: readonly CallLogEntry[]): Promise<void> {
    if (entries.length === 0) return
    if (entries.length <= CHUNK_ROWS) return this.#insert(this.#db, entries, false)
    await this.#db.transaction().execute((trx) => this.#insertAll(trx, entries, false))
  }

  /**
   * Adds entries as a part of somebody else's transaction. Each takes the place of an earlier one with its id: what
   * settles a call knows best what became of it.
   *
   * @example
   * await db.transaction().execute(async (trx) => {
   *   await writeCharge(trx)
   *   await store.appendWithin(trx, [entry])
   * })
   */
  async appendWithin(trx: Database, entries: readonly CallLogEntry[]): Promise<void> {
    const last = new Map(entries.map((entry) => [entry.id, entry]))
    await this.#insertAll(trx, [...last.values()], true)
  }

  async find(id: string): Promise<CallLogEntry | undefined> {
    const row = await this.#db
      .selectFrom('calls')
      .select(['entry', 'response_body'])
      .where('id', '=', id)
      .executeTakeFirst()
    return row && toEntry(row.entry, row.response_body)
  }

  async list(query: CallQuery): Promise<CallLogEntry[]> {
    const { account, model, status, code, to, before, limit } = query
    const oldest = query.from === undefined ? undefined : firstIdOf(query.from)
    let calls = this.#searches.selectFrom('calls').select('entry')
    if (account !== undefined) calls = calls.where('account', '=', account)
    if (model !== undefined) calls = calls.where('model', '=', model)
    if (status !== undefined) calls = calls.where('status', '=', status)
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

  async #insertAll(trx: Database, entries: readonly CallLogEntry[], replace: boolean): Promise<void> {
    for (let at = 0; at < entries.length; at += CHUNK_ROWS) {
      await this.#insert(trx, entries.slice(at, at + CHUNK_ROWS), replace)
    }
  }

  async #insert(db: Database, entries: readonly CallLogEntry[], replace: boolean): Promise<void> {
    const known = replace ? this.#replacements : this.#inserts
    const text = known.get(entries.length) ?? insertOf(this.#db, entries.length, replace)
    known.set(entries.length, text)
    const parameters: unknown[] = []
    for (const entry of entries) pushRow(parameters, entry)
    await db.executeQuery(CompiledQuery.raw(text, parameters))
  }
}

/** The least id of all that are made at a time or after it. */
function firstIdOf(time: number): string {
  return newRequestId(Math.min(Math.max(0, Math.ceil(time)), LAST_TIME)).slice(0, TIME_PREFIX)
}

/**
 * Whether one index answers all of a query's filters. Such a query reads no more rows than its limit, so that what is
 * too old can be left out afterwards; asked for a span of ids with two ends, SQLite would rather walk through all of
 * the account's calls in that span.
 */
function hasIndex({ account, model, status, code }: CallQuery): boolean {
  return account !== undefined && [model, status, code].filter((filter) => filter !== undefined).length === 1
}

function insertOf(db: Database, rows: number, replace: boolean): string {
  const row = Object.fromEntries(COLUMNS.map((column) => [column, ''])) as unknown as CallsTable
  const insert = db.insertInto('calls').values(Array.from({ length: rows }, () => row))
  const settled = insert.onConflict((conflict) => {
    if (!replace) return conflict.column('id').doNothing()
    return conflict
      .column('id')
      .doUpdateSet(({ ref }) =>
        Object.fromEntries(COLUMNS.map((column) => [column, ref(`excluded.${column}`)])),
      )
  })
  return settled.compile().sql
}

/** In the order of {@link COLUMNS}. */
function pushRow(parameters: unknown[], entry: CallLogEntry): void {
  const { response_body, ...rest } = entry
  const createdAt = BigInt(Date.parse(entry.created_at))
  parameters.push(entry.id, entry.account, entry.key, entry.model, entry.status, entry.error_code, createdAt)
  parameters.push(JSON.stringify(rest), response_body)
}

function toEntry(json: string, responseBody: string | null): CallLogEntry {
  return { ...(JSON.parse(json) as Omit<CallLogEntry, 'response_body'>), response_body: responseBody }
}
