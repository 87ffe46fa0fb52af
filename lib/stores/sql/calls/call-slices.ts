import { type RawBuilder, sql } from 'kysely'
import { isPostgres } from '../driver/is-postgres.ts'
import type { Database } from '../driver/tables.ts'
import { all, type CallList, type IdRange } from './call-lists.ts'

/** What calls of a list are compared with. */
export interface Comparison {
  /** Lists that must have them too. */
  readonly lists: readonly CallList[]
  /** What their rows must be. */
  readonly conditions: readonly RawBuilder<unknown>[]
}

/** A row of a slice: a call, or without an entry the last id that was compared. */
export interface SliceRow {
  readonly id: string
  readonly entry: string | null
}

export function newestCalls(
  db: Database,
  list: CallList,
  range: IdRange,
  limit: number,
): RawBuilder<{ id: string; entry: string }> {
  const listed = sql`(${list.newest(db, range, limit)}) as listed`
  return matching(db, listed, { lists: [], conditions: [] }, limit)
}

/**
 * Returns the query of the newest calls of a list that pass a comparison, of which it reads so many ids at most. If it has as many,
 * one more row tells the last of them.
 */
export function sliceOf(
  db: Database,
  list: CallList,
  range: IdRange,
  compared: Comparison,
  { most, limit }: { readonly most: number; readonly limit: number },
): RawBuilder<SliceRow> {
  return sql`with listed as materialized (${list.newest(db, range, most)})
    select id, entry from (${matching(db, sql`listed`, compared, limit)}) as matching
    union all select min(id), null from listed having count(*) = ${sql.lit(most)}
    order by 1 desc`
}

/** The rows of calls are read last: indexes have the ids of neighbours side by side. */
function matching(
  db: Database,
  listed: RawBuilder<unknown>,
  { lists, conditions }: Comparison,
  limit: number,
): RawBuilder<{ id: string; entry: string }> {
  const newest = sql`order by listed.id desc limit ${sql.lit(limit)}`
  if (!isPostgres(db)) {
    const found = lists.map((list) => sql`exists (${list.find(db, sql`listed.id`)})`)
    return sql`select calls.id, calls.entry from ${listed} cross join calls
      where ${all([...found, sql`calls.id = listed.id`, ...conditions])} ${newest}`
  }
  // One after the other for each call, whatever the planner believes of them.
  const joined: RawBuilder<unknown>[] = []
  let id = sql.ref('listed.id')
  for (const [i, list] of lists.entries()) {
    joined.push(sql`cross join lateral (${list.find(db, id)}) as ${sql.ref(`also_${i}`)}`)
    id = sql.ref(`also_${i}.id`)
  }
  return sql`select found.id, found.entry from ${listed} ${sql.join(joined, sql` `)} cross join lateral
    (select id, entry from calls where ${all([sql`calls.id = ${id}`, ...conditions])} limit 1) as found ${newest}`
}
