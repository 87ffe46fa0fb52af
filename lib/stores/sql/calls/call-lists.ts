import { type RawBuilder, sql } from 'kysely'
import { isPostgres } from '../driver/is-postgres.ts'
import type { Database } from '../driver/tables.ts'

/** The ids between which calls are searched: `from` is included, `before` is not. */
export interface IdRange {
  readonly from: string | undefined
  readonly before: string | undefined
}

/** Calls that have something in common, in an index by their id. */
export interface CallList {
  /** Returns the query of its newest ids, so many at most, the newest first. It reads no other rows. */
  newest(db: Database, range: IdRange, most: number): RawBuilder<{ id: string }>
  /** Returns the query of an id, if the list has it. */
  find(db: Database, id: RawBuilder<unknown>): RawBuilder<{ id: string }>
  /** In how many places of the index an id may be. */
  readonly places: number
}

/** Lists the calls that have a label, or one of several of which none has two. */
export function labelled(...labels: readonly string[]): CallList {
  return {
    newest(db, range, most) {
      const newest = (label: RawBuilder<unknown>) => newestOf(db, LABELS, { label }, range, most)
      const [label] = labels
      if (labels.length === 1) return newest(sql`${label}`)
      const given = sql`(${sql.join(
        labels.map((each) => sql`select ${each} as label`),
        sql` union all `,
      )}) as given`
      const each = newest(sql`given.label`)
      const found = isPostgres(db)
        ? sql`${given} cross join lateral (${each}) as found`
        : sql`${given} cross join call_labels as found on found.label = given.label and found.id in (${each})`
      return sql`select found.id from ${found} order by found.id desc limit ${sql.lit(most)}`
    },
    find: (_, id) => sql`select id from call_labels as own
      where own.label in (${sql.join(labels)}) and own.id = ${id} limit 1`,
    places: labels.length,
  }
}

/** Lists the calls that have some values in the columns of an index of `calls`, whose last column is the id. */
export function indexed(
  name: string,
  values: Readonly<Record<string, string | number>>,
  condition?: RawBuilder<unknown>,
): CallList {
  const cells = Object.fromEntries(Object.entries(values).map(([column, value]) => [column, sql`${value}`]))
  const index = { table: 'calls', index: name, condition }
  const equal = [...equalTo(cells), ...(condition ? [condition] : [])]
  return {
    newest: (db, range, most) => newestOf(db, index, cells, range, most),
    find: (db, id) => sql`select id from calls ${told(db, index)}
      where ${all([...equal, sql`calls.id = ${id}`])} limit 1`,
    places: 1,
  }
}

/** An index that ends with the id, and the condition of its rows. */
interface Index {
  readonly table: string
  /** Undefined: SQLite takes it without being told. */
  readonly index?: string
  readonly condition?: RawBuilder<unknown> | undefined
}

const LABELS: Index = { table: 'call_labels' }
/** Behind all ids. */
const LAST_ID = '~'

/** Returns the query of the newest ids of an index that come behind some values. */
function newestOf(
  db: Database,
  index: Index,
  values: Readonly<Record<string, RawBuilder<unknown>>>,
  range: IdRange,
  most: number,
): RawBuilder<{ id: string }> {
  const equal = equalTo(values)
  const { table, condition } = index
  const conditions = [...(condition ? [condition] : []), ...within(range)]
  // With both ends of a range of ids, SQLite would take another index, and read all calls of the range.
  if (!isPostgres(db))
    return sql`select id from ${sql.table(table)} ${told(db, index)}
      where ${all([...equal, ...conditions])} order by id desc limit ${sql.lit(most)}`
  // The last column is compared together with the id: then Postgres cannot but read this index in its order. Where it believes a
  // value to be rare or common, which can be out of date, it would sort all rows that have it, or look for it among all calls.
  const [name = '', cell] = Object.entries(values).at(-1) ?? []
  const { from = '', before = LAST_ID } = range
  const column = sql.ref(name)
  const ends = [sql`(${column}, id) >= (${cell}, ${from})`, sql`(${column}, id) <= (${cell}, ${before})`]
  return sql`select id from ${sql.table(table)} where ${all([...equal.slice(0, -1), ...ends, ...conditions])}
    order by ${column} desc, id desc limit ${sql.lit(most)}`
}

function equalTo(values: Readonly<Record<string, RawBuilder<unknown>>>): RawBuilder<unknown>[] {
  return Object.entries(values).map(([column, cell]) => sql`${sql.ref(column)} = ${cell}`)
}

function within({ from, before }: IdRange): RawBuilder<unknown>[] {
  const ends: RawBuilder<unknown>[] = []
  if (from !== undefined) ends.push(sql`id >= ${from}`)
  if (before !== undefined) ends.push(sql`id < ${before}`)
  return ends
}

export function all(conditions: readonly RawBuilder<unknown>[]): RawBuilder<unknown> {
  return conditions.length === 0 ? sql`true` : sql.join(conditions, sql` and `)
}

/** Tells SQLite the index. */
function told(db: Database, { index }: Index): RawBuilder<unknown> {
  return index === undefined || isPostgres(db) ? sql`` : sql`indexed by ${sql.ref(index)}`
}

/** Returns the list of all calls, or of those with some ids, and with some columns. */
export function calls(ids?: readonly string[]): CallList {
  const among = ids ? [sql`calls.id in (${sql.join(ids)})`] : []
  return {
    newest: (_, range, most) => sql`select id from calls where ${all([...among, ...within(range)])}
      order by id desc limit ${sql.lit(most)}`,
    find: (_, id) => sql`select id from calls where ${all([...among, sql`calls.id = ${id}`])} limit 1`,
    places: 1,
  }
}
