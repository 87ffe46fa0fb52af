/** A statement that occurs this often gets a name. */
const MIN_USES = 10
const MAX_KEPT = 200
/** Longer statements are inserts of many rows, which take almost no planning. */
const MAX_LENGTH = 4000
const MAX_COUNTED = 1000

/**
 * Names statements that occur often, because a connection parses a named statement only once and later also plans it
 * only once.
 */
export class PostgresStatements {
  readonly #names = new Map<string, string>()
  readonly #uses = new Map<string, number>()

  /** Returns the name of a statement, if it has one by now. */
  nameOf(sql: string): string | undefined {
    return this.#names.get(sql) ?? this.#count(sql)
  }

  #count(sql: string): string | undefined {
    if (sql.length > MAX_LENGTH || this.#names.size === MAX_KEPT) return undefined
    const uses = (this.#uses.get(sql) ?? 0) + 1
    if (uses < MIN_USES) {
      if (this.#uses.size === MAX_COUNTED) this.#uses.clear()
      this.#uses.set(sql, uses)
      return undefined
    }
    this.#uses.delete(sql)
    const name = `s${this.#names.size}`
    this.#names.set(sql, name)
    return name
  }
}
