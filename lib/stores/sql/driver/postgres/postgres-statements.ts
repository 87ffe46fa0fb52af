/** A statement that comes this often is worth keeping. */
const OFTEN = 10
const MOST_KEPT = 200
/** Longer ones are inserts of many rows, which take next to no planning. */
const LONGEST = 1500
const MOST_COUNTED = 1000

/**
 * Names for the statements that come again and again: each connection parses, and after a while plans, a named one only
 * once.
 */
export class PostgresStatements {
  readonly #names = new Map<string, string>()
  readonly #uses = new Map<string, number>()

  /** The name that a statement has by now. */
  nameOf(sql: string): string | undefined {
    return this.#names.get(sql) ?? this.#count(sql)
  }

  #count(sql: string): string | undefined {
    if (sql.length > LONGEST || this.#names.size === MOST_KEPT) return undefined
    const uses = (this.#uses.get(sql) ?? 0) + 1
    if (uses < OFTEN) {
      if (this.#uses.size === MOST_COUNTED) this.#uses.clear()
      this.#uses.set(sql, uses)
      return undefined
    }
    this.#uses.delete(sql)
    const name = `s${this.#names.size}`
    this.#names.set(sql, name)
    return name
  }
}
