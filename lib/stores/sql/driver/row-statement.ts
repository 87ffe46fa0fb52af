import { CompiledQuery } from 'kysely'
import type { Cell, CellType } from './columns.ts'
import { isPostgres } from './database.ts'
import { arraysOf } from './postgres/postgres-values.ts'
import type { Database } from './tables.ts'

/**
 * A statement over rows, for both databases. Its SQL refers to the given rows as the table `given`, and to the rows of
 * its own table as `found`.
 *
 * SQLite runs it once per row, with the cells as parameters; Postgres once for all rows, with the columns as arrays. So
 * the SQL is the same for any number of rows, and both keep it prepared. Postgres locks the found rows in the order of
 * their ids, as all writers of several rows do, so that no two of them wait for each other.
 */
export class RowStatement<Row = unknown> {
  /** The name of the prepared statement in Postgres. */
  readonly name = `rows_${++made}`
  /** The columns of `given`, in the order in which the rows have them. */
  readonly columns: readonly CellType[]
  readonly sqlite: string
  readonly postgres: string
  /** The SQL within a transaction that is rolled back if a row was not written. */
  readonly postgresOrFail: string
  /** Whether the statement may write fewer rows than it is given. */
  readonly loose: boolean

  private constructor(
    columns: Readonly<Record<string, CellType>>,
    sqlite: string,
    postgres: string,
    { loose = false, returns = false }: { loose?: boolean; returns?: boolean } = {},
  ) {
    this.columns = Object.values(columns)
    this.loose = loose
    this.sqlite = sqlite
    const given = givenOf(columns)
    this.postgres = `with ${given} ${postgres}`
    // A division by zero fails the transaction.
    this.postgresOrFail = loose
      ? this.postgres
      : `with ${given}, done as (${postgres} ${returns ? '' : 'returning 1'})
        select 1 / (count(*) = cardinality($1::text[]))::integer from done`
  }

  /**
   * @example
   * RowStatement.insert('charges', { request_id: 'text', amount: 'bigint' }, 'on conflict (request_id) do nothing')
   */
  static insert<Row = unknown>(
    table: string,
    columns: Readonly<Record<string, CellType>>,
    onConflict: string,
    { unless, constants = {}, loose = false, returning, order }: InsertOptions = {},
  ): RowStatement<Row> {
    const names = Object.keys(columns)
    const into = `into ${table} (${[...names, ...Object.keys(constants)]})`
    const cells = [...names.map((name) => `given.${name}`), ...Object.values(constants)].join()
    const where = `where ${unless === undefined ? 'true' : `not exists (${unless})`}`
    // SQLite copies each page before a statement of several rows changes it, which one from a query may be to it, to
    // undo that statement alone. Nobody goes on after a failure.
    // Without numbers: to bind by them, node:sqlite looks each one up among all.
    const values = [...names.map(() => '?'), ...Object.values(constants)].join()
    const given =
      unless === undefined ? `values (${values})` : parametersFor(columns, `select ${cells} ${where}`)
    const returned = returning === undefined ? '' : ` returning ${returning}`
    return new RowStatement(
      columns,
      `insert or fail ${into} ${given} ${onConflict}${returned}`,
      `insert ${into} select ${cells} from given ${where} order by ${(order ?? names.slice(0, 1)).map((name) => orderedBy(name, columns[name]))} ${onConflict}${returned}`,
      { loose, returns: returning !== undefined },
    )
  }

  /**
   * @example
   * RowStatement.update('wallets', { id: 'text', cost: 'bigint' }, 'spent = found.spent + given.cost', 'found.id = given.id')
   */
  static update<Row = unknown>(
    table: string,
    columns: Readonly<Record<string, CellType>>,
    set: string,
    where: string,
    { locks = true, loose = false, returning, order = 'id' }: WriteOptions = {},
  ): RowStatement<Row> {
    return new RowStatement(
      columns,
      `update ${table} as found set ${parametersFor(columns, `${set} where ${where}`)}${returnedOf(returning)}`,
      `update ${table} as found set ${set} from ${lockedOf(table, where, locks, order)} where ${where}${returnedOf(returning, 'found.')}`,
      { loose, returns: returning !== undefined },
    )
  }

  /**
   * Changes nothing, and fails if a row is not there. It cannot be changed until the end of the transaction. It must stand before
   * all writes that it judges: on Postgres it does not see those of the same batch.
   */
  static keep(table: string, columns: Readonly<Record<string, CellType>>, where: string): RowStatement {
    return new RowStatement(
      columns,
      `update ${table} as found set id = found.id where ${parametersFor(columns, where)}`,
      `select 1 from given join ${table} as found on ${where} order by found.id for share of found`,
      { returns: true },
    )
  }

  /** Deletes rows. Rows that do not exist are ignored, unless it is not `loose`. */
  static delete<Row = unknown>(
    table: string,
    columns: Readonly<Record<string, CellType>>,
    where: string,
    { locks = true, loose = true, returning, order = 'id' }: WriteOptions = {},
  ): RowStatement<Row> {
    return new RowStatement(
      columns,
      `delete from ${table} as found where ${parametersFor(columns, where)}${returnedOf(returning)}`,
      `delete from ${table} as found using ${lockedOf(table, where, locks, order)} where ${where}${returnedOf(returning, 'found.')}`,
      { loose, returns: returning !== undefined },
    )
  }

  /**
   * @param select the query over `given`; to lock, it must also select the rows of `found`. `free ones`: rows that another
   *   transaction has locked are left out.
   */
  static select<Row>(
    columns: Readonly<Record<string, CellType>>,
    select: string,
    { locks = false }: { locks?: boolean | 'free ones' } = {},
  ): RowStatement<Row> {
    const names = Object.keys(columns)
    const given = names.map((name, i) => `?${i + 1} as ${name}`)
    return new RowStatement<Row>(
      columns,
      `with given as (select ${given}) ${select}`,
      locks ? `${select} order by found.id for update of found${skipping(locks)}` : select,
      { loose: true },
    )
  }

  /**
   * A statement of several steps for Postgres: each is the table of its name to those behind it, and sees none of what the
   * others write.
   *
   * @param sqlite the statement that does the same for a row; without one it is for Postgres alone.
   */
  static steps<Row>(
    columns: Readonly<Record<string, CellType>>,
    steps: Readonly<Record<string, string>>,
    select: string,
    sqlite = '',
  ): RowStatement<Row> {
    const named = Object.entries(steps).map(([name, query]) => `, ${name} as (${query})`)
    return new RowStatement<Row>(columns, sqlite, `${named.join('')} ${select}`, { loose: true })
  }

  /** Runs the statement for all rows, or for none if one fails: within a transaction, or in one of its own. */
  async run(db: Database, rows: readonly (readonly Cell[])[]): Promise<{ rows: Row[]; changes: number }> {
    if (rows.length === 0) return { rows: [], changes: 0 }
    const query = isPostgres(db)
      ? CompiledQuery.raw(this.postgres, arraysOf(this.columns, rows))
      : CompiledQuery.raw(this.sqlite, [rows])
    const result = await db.executeQuery<Row>(query as CompiledQuery<Row>)
    return { rows: result.rows, changes: Number(result.numAffectedRows ?? 0) }
  }
}

interface InsertOptions {
  /** A query that returns a row if the given row must not be written. */
  readonly unless?: string
  /** Columns that are the same in each row. */
  readonly constants?: Readonly<Record<string, number>>
  /** Whether a row may be left out. */
  readonly loose?: boolean
  /** Columns of the written rows that are returned, separated by commas. */
  readonly returning?: string
  /** The columns that name a row, in whose order Postgres locks them. Defaults to the first column. */
  readonly order?: readonly string[]
}

interface WriteOptions {
  readonly locks?: true | 'free ones'
  readonly loose?: boolean
  /** Columns of the written rows that are returned, separated by commas. */
  readonly returning?: string
  /** The column that names a row, in whose order Postgres locks them. Defaults to `id`. */
  readonly order?: string
}

function returnedOf(returning: string | undefined, of = ''): string {
  return returning === undefined ? '' : ` returning ${returning.replaceAll(/\w+/g, `${of}$&`)}`
}

function orderedBy(name: string, type: CellType | undefined): string {
  return type === 'text' ? `given.${name} collate "C"` : `given.${name}`
}

let made = 0

/** Rows that a statement writes. If one of them is not written, the transaction fails, except for a deletion. */
export interface RowWrite {
  readonly statement: RowStatement
  readonly rows: readonly (readonly Cell[])[]
}

/** Returns the rows as a table, for Postgres. */
function givenOf(columns: Readonly<Record<string, CellType>>): string {
  const arrays = Object.values(columns).map((type, i) => `$${i + 1}::${type}[]`)
  return `given(${Object.keys(columns)}) as (select * from unnest(${arrays}))`
}

/** Returns the rows whose counterparts exist in a table, and locks those, for Postgres. */
function lockedOf(table: string, where: string, locks: boolean | 'free ones' = true, order = 'id'): string {
  return `(select given.* from given join ${table} as found on ${where}
    order by found.${order} for update of found${skipping(locks)}) as given`
}

function skipping(locks: boolean | 'free ones'): string {
  return locks === 'free ones' ? ' skip locked' : ''
}

/** Replaces the columns of the single row by parameters, for SQLite. */
function parametersFor(columns: Readonly<Record<string, CellType>>, text: string): string {
  const names = Object.keys(columns)
  return text.replaceAll(/\bgiven\.(\w+)/g, (_, name: string) => `?${names.indexOf(name) + 1}`)
}
