import { type RawBuilder, sql } from 'kysely'
import { isPostgres } from '../driver/is-postgres.ts'
import type { Database } from '../driver/tables.ts'

/** The ids between which calls are searched: `from` is included, `before` is not. */
export interface IdRange {
  readonly from: string | undefined
  readonly before: string | undefined
}

/** Returns the query of the newest ids of a list, so many at most, the newest first. It reads no other rows. */
export type CallList = (db: Database, range: IdRange, most: number) => RawBuilder<{ id: string }>

/** Lists the calls that have a label, or one of several. */
export function labelled(...labels: readonly string[]): CallList {
  return (db, range, most) => {
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
  }
}

/** Lists the calls that have some values in the columns of an index of `calls`, whose last column is the id. */
export function indexed(
  name: string,
  values: Readonly<Record<string, string | number>>,
  condition?: RawBuilder<unknown>,
): CallList {
  const cells = Object.fromEntries(Object.entries(values).map(([column, value]) => [column, sql`${value}`]))
  return (db, range, most) => newestOf(db, { table: 'calls', index: name, condition }, cells, range, most)
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
  { table, index, condition }: Index,
  values: Readonly<Record<string, RawBuilder<unknown>>>,
  range: IdRange,
  most: number,
): RawBuilder<{ id: string }> {
  const columns = Object.keys(values).map((column) => sql.ref(column))
  const cells = Object.values(values)
  const equal = columns.map((column, i) => sql`${column} = ${cells[i]}`)
  const conditions = [...equal, ...(condition ? [condition] : [])]
  if (!isPostgres(db)) {
    // With both ends of a range of ids, SQLite would take another index, and read all calls of the range.
    const told = index === undefined ? sql`` : sql`indexed by ${sql.ref(index)}`
    return sql`select id from ${sql.table(table)} ${told} where ${all([...conditions, ...within(range)])}
      order by id desc limit ${sql.lit(most)}`
  }
  // The last column is compared together with the id: then Postgres cannot but read this index in its order. Where it believes a
  // value to be rare or common, which can be out of date, it would sort all rows that have it, or look for it among all calls.
  // Behind `from` it would go on to the end of the value. Of "<" it expects no rows for the least value, however many have it.
  const { from, before = LAST_ID } = range
  const [column, cell] = [columns.at(-1), cells.at(-1)]
  const ends = [sql`(${column}, id) <= (${cell}, ${before})`, sql`${column} >= ${cell}`, sql`id < ${before}`]
  const newest = sql<{ id: string }>`select id from ${sql.table(table)}
    where ${all([...conditions.filter((each) => each !== equal.at(-1)), ...ends])}
    order by ${column} desc, id desc limit ${sql.lit(most)}`
  return from === undefined ? newest : sql`select id from (${newest}) as newest where id >= ${from}`
}

/** Lists all calls. */
export const everyCall: CallList = (_, range, most) =>
  sql`select id from calls where ${all(within(range))} order by id desc limit ${sql.lit(most)}`

/** Returns the query of the last id that a list has there; of none if it has fewer. */
export function lastOf(list: CallList, db: Database, range: IdRange, most: number): RawBuilder<string> {
  return sql`select id from (${list(db, range, most)}) as listed limit 1 offset ${sql.lit(most - 1)}`
}

/** Returns the query of the calls of a list that meet conditions, of which it reads so many ids at most. */
export function callsOf(
  list: CallList,
  db: Database,
  range: IdRange,
  conditions: readonly RawBuilder<unknown>[],
  { most, limit }: { readonly most: number; readonly limit: number },
): RawBuilder<{ entry: string }> {
  const listed = sql`(${list(db, range, most)}) as listed`
  const found = all([sql`calls.id = listed.id`, ...conditions])
  // Each call is looked up by its id, whatever the planner believes of the conditions.
  return isPostgres(db)
    ? sql`select found.entry from ${listed} cross join lateral (select entry from calls where ${found} limit 1) as found
        order by listed.id desc limit ${sql.lit(limit)}`
    : sql`select calls.entry from ${listed} cross join calls where ${found} order by listed.id desc limit ${sql.lit(limit)}`
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
