import { isPostgres } from './is-postgres.ts'
import type { Database } from './tables.ts'

interface Waiting {
  readonly key: string
  readonly write: (db: Database) => Promise<unknown>
  resolve(result: unknown): void
  reject(error: unknown): void
}

/** So that no transaction takes long. */
const LARGEST_GROUP = 200

/**
 * Does the writes that wait in one transaction: as soon as one group is committed the next takes all that came
 * meanwhile. Under load that is one commit, and one wait for other processes, for many writes; alone a write goes out
 * at once. A group succeeds or fails as a whole.
 *
 * So on SQLite, where one writes at a time. Postgres gathers the commits of its connections itself; there each write
 * goes its own way and waits for no other's round trips.
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
   * @param key what the write locks: groups lock in this order, so that two processes never wait for each other.
   * @param write asks the database that it is given; one statement after the other, as there may be no transaction.
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
    while (this.#waiting.length > 0) await this.#writeGroup(this.#waiting.splice(0, LARGEST_GROUP))
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
    return group.length === 1 ? writeAll(this.#db) : this.#db.transaction().execute(writeAll)
  }
}
