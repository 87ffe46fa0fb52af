import { type CompiledQuery, type RawBuilder, sql } from 'kysely'
import { isPostgres } from './is-postgres.ts'
import type { Database } from './tables.ts'

type Cell = string | number | bigint | null

/**
 * A statement over rows, which it finds as the table `given`. They are handed to it as one parameter of JSON: its text
 * is the same for any number of rows, so that it is worded once and the database keeps it prepared.
 *
 * @example
 * const spend = new RowStatement(db, { id: 'text', amount: 'bigint' }, sql`
 *   update wallets set spent = spent + given.amount from given where wallets.id = given.id`)
 * await spend.run(trx, [['account:acme', 5n], ['key:key_acme', 5n]])
 */
export class RowStatement<Row = unknown> {
  readonly #query: CompiledQuery<Row>
  readonly #postgres: boolean

  /** @param columns of the table `given`, in the order in which the rows have them. */
  constructor(
    db: Database,
    columns: Readonly<Record<string, 'text' | 'bigint'>>,
    statement: RawBuilder<Row>,
  ) {
    this.#postgres = isPostgres(db)
    const names = Object.keys(columns).map((name) => sql.ref(name))
    const values = Object.values(columns).map((type, i) => this.#member(i, type))
    // Told how many rows there are, Postgres looks them up one by one in a large table; it would read it all for a hundred.
    const items = this.#postgres
      ? sql`json_array_elements(cast(${''} as json)) as item limit ${0}`
      : sql`json_each(${''}) as item`
    const given = sql`given(${sql.join(names)}) as (select ${sql.join(values)} from ${items})`
    this.#query = sql<Row>`with ${given} ${statement}`.compile(db)
  }

  async run(db: Database, rows: readonly (readonly Cell[])[]): Promise<Row[]> {
    if (rows.length === 0) return []
    const parameters = this.#postgres ? [this.#toJson(rows), rows.length] : [this.#toJson(rows)]
    const result = await db.executeQuery<Row>({ ...this.#query, parameters })
    return result.rows
  }

  #member(index: number, type: 'text' | 'bigint'): RawBuilder<unknown> {
    const text = sql`(item.value ->> ${sql.lit(index)})`
    if (type === 'bigint') return sql`cast(${text} as bigint)`
    return this.#postgres ? sql`${text} collate "C"` : text
  }

  #toJson(rows: readonly (readonly Cell[])[]): string {
    const json = JSON.stringify(rows.map((row) => row.map(toMember)))
    if (!json.includes('\\u')) return json
    const whole = json.replaceAll(LONE_SURROGATE, '$1\ufffd')
    // Postgres reads no U+0000 in JSON; unescaped, it becomes what the driver writes for it.
    return this.#postgres ? whole.replaceAll(NUL, '$1\0') : whole
  }
}

/** Behind any number of backslashes that stand for themselves. */
const LONE_SURROGATE = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g
const NUL = /(?<!\\)((?:\\\\)*)\\u0000/g

function toMember(cell: Cell): string | number | null {
  return typeof cell === 'bigint' ? cell.toString() : cell
}
