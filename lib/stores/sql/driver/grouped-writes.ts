import { isPostgres } from './database.ts'
import type { Database } from './tables.ts'
import { transact } from './transact.ts'

interface Waiting {
  readonly key: string
  readonly write: (db: Database) => Promise<unknown>
  resolve(result: unknown): void
  reject(error: unknown): void
}

/** Limits the duration of a transaction. */
const MAX_GROUP = 200

/**
 * Runs waiting writes in one transaction. When a group is committed, the next one takes all writes that have come
 * meanwhile. Under load, many writes share one commit and one wait for other processes; a single write runs at once. A
 * group succeeds or fails as a whole.
 *
 * Only for SQLite, which has one writer at a time. Postgres groups the commits of its connections itself; there, each
 * write runs on its own and does not wait for the round trips of others.
 */
export class GroupedWrites {
  readonly #db: Database
  readonly #together: boolean
  readonly #waiting: Waiting[] = []
  #writing = false

  constructor(db: Database) {
    this.#db = db
    this.#together = !isPostgres(db)
  }

  /**
   * @param key the rows that the write locks: groups lock in this order, so that two processes never wait for each
   *   other.
   * @param write queries the given database, one statement after another, because it may be outside a transaction.
   */
  run<T>(key: string, write: (db: Database) => Promise<T>): Promise<T> {
    if (!this.#together) return write(this.#db)
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    this.#waiting.push({ key, write, resolve: (result) => resolve(result as T), reject })
    if (!this.#writing) void this.#writeAll()
    return promise
  }

  async #writeAll(): Promise<void> {
    this.#writing = true
    while (this.#waiting.length > 0) await this.#writeGroup(this.#waiting.splice(0, MAX_GROUP))
    this.#writing = false
  }

  async #writeGroup(group: Waiting[]): Promise<void> {
    group.sort((one, other) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0))
    try {
      const results = await this.#commit(group)
      for (const [i, { resolve }] of group.entries()) resolve(results[i])
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
  }

  #commit(group: readonly Waiting[]): Promise<unknown[]> {
    const writeAll = (db: Database) => Promise.all(group.map(({ write }) => write(db)))
    return group.length === 1 ? writeAll(this.#db) : transact(this.#db, writeAll)
  }
}
