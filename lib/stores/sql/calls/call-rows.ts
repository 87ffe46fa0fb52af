import { CompiledQuery } from 'kysely'
import type { CallsTable, Database } from '../driver/tables.ts'

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

/** Writes log entries, many with one statement. */
export class CallRows {
  readonly #db: Database
  readonly #replaces: boolean
  /** The text of the insert for each number of rows, as wording one takes longer than filling it in. */
  readonly #inserts = new Map<number, string>()

  /** @param replaces whether an entry takes the place of an earlier one with its id, or gives way to it. */
  constructor(db: Database, { replaces }: { replaces: boolean }) {
    this.#db = db
    this.#replaces = replaces
  }

  /** Whether so many rows go in one statement, so that they need no transaction to be written as one. */
  static fitsOneStatement(rows: number): boolean {
    return rows <= CHUNK_ROWS
  }

  async insert(db: Database, rows: readonly CallsTable[]): Promise<void> {
    for (let at = 0; at < rows.length; at += CHUNK_ROWS) {
      const chunk = rows.slice(at, at + CHUNK_ROWS)
      const parameters = chunk.flatMap((row) => COLUMNS.map((column) => row[column]))
      await db.executeQuery(CompiledQuery.raw(this.#textFor(chunk.length), parameters))
    }
  }

  #textFor(rows: number): string {
    const known = this.#inserts.get(rows)
    if (known !== undefined) return known
    const text = insertOf(this.#db, rows, this.#replaces)
    this.#inserts.set(rows, text)
    return text
  }
}

function insertOf(db: Database, rows: number, replaces: boolean): string {
  const row = Object.fromEntries(COLUMNS.map((column) => [column, ''])) as unknown as CallsTable
  const insert = db.insertInto('calls').values(Array.from({ length: rows }, () => row))
  const settled = insert.onConflict((conflict) => {
    if (!replaces) return conflict.column('id').doNothing()
    return conflict
      .column('id')
      .doUpdateSet(({ ref }) =>
        Object.fromEntries(COLUMNS.map((column) => [column, ref(`excluded.${column}`)])),
      )
  })
  return settled.compile().sql
}
