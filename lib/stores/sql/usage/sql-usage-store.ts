import { HOUR_MS, type UsageQuery, type UsageRow, type UsageStore } from '../../../core/usage/index.ts'
import { checkDatabase } from '../driver/check-database.ts'
import type { Database } from '../driver/tables.ts'
import { usageQuery } from './read-usage.ts'
import { sumsOf } from './usage-tally.ts'

const DAY_MS = 24 * HOUR_MS

/**
 * Reads the usage that `SqlLedger` and `SqlCallStore` have counted in a database. Give it a read-only handle: a query may take
 * long.
 *
 * @example
 * const store = new SqlUsageStore(await openDatabase('sqlite:.data/gateway.db', { readOnly: true }))
 * app.use('/v1', usageRoutes({ store }))
 */
export class SqlUsageStore implements UsageStore {
  readonly #db: Database

  constructor(db: Database) {
    checkDatabase('SqlUsageStore', db)
    this.#db = db
  }

  async read(query: UsageQuery): Promise<UsageRow[]> {
    const { groupBy, after, limit, to } = query
    // No statement reads no hours.
    if (query.from >= to) return []
    if (groupBy.length === 1 || (groupBy[0] !== 'hour' && groupBy[0] !== 'day')) return this.#read(query)
    // The rows of a page are those of the first days: the others need not be read.
    const rows: UsageRow[] = []
    let from = Math.max(query.from, Number(after?.[0] ?? 0))
    for (let days = 1; from < to && rows.length < limit; days *= 2) {
      const end = Math.min(to, from - (from % DAY_MS) + days * DAY_MS)
      rows.push(...(await this.#read({ ...query, from, to: end, limit: limit - rows.length })))
      from = end
    }
    return rows
  }

  async #read(query: UsageQuery): Promise<UsageRow[]> {
    const { rows } = await usageQuery(this.#db, query).execute(this.#db)
    return rows.map((row) => ({
      groups: query.groupBy.map((_, i) => {
        const value = row[`g${i}`] as string | bigint | number
        return typeof value === 'string' ? value : Number(value) * HOUR_MS
      }),
      sums: sumsOf(row as Record<string, bigint | number>),
    }))
  }
}
