import { type RawBuilder, sql } from 'kysely'
import type { CallQuery } from '../../../middleware/call-log/index.ts'
import type { Database } from '../driver/tables.ts'
import { all, callsOf, type IdRange, lastOf } from './call-lists.ts'
import { type Filtered, filtersOf, listsOf, type SearchList } from './search-plan.ts'

/** What a search has found, as JSON, newest first; with `next`, it has stopped there, and older calls may fit as well. */
export interface FoundCalls {
  readonly entries: readonly string[]
  readonly next?: string
}

/** So far ahead lists are compared. */
const COMPARED = 200
/** How many calls are compared at a time with the filters that the list has not. */
const SLICES = [500, 1000, 2000, 4000]
/** The most calls of a page, and about the longest time for it. */
const MAX_COMPARED = 10_000
const MAX_MS = 30

/**
 * Returns a page of a search. If one list has all that is asked for, the page is read from it. Else the calls of the shortest list
 * are compared with the other filters, a bounded number of them: then the page may have fewer calls than it could.
 */
export async function searchCalls(db: Database, query: CallQuery, range: IdRange): Promise<FoundCalls> {
  const { ids, limit } = query
  const filters = filtersOf(db, query)
  if (ids !== undefined) return callsWith(db, ids, filters, range, limit)
  const lists = listsOf(query)
  const whole = lists.find(({ covers }) => filters.every(({ name }) => covers.has(name)))
  if (whole)
    return { entries: await entriesOf(db, callsOf(whole.ids, db, range, [], { most: limit, limit })) }
  const startedAt = performance.now()
  const list = await shortest(db, lists, range)
  const conditions = filters.filter(({ name }) => !list.covers.has(name)).map(({ condition }) => condition)
  const found: string[] = []
  let { before } = range
  for (let most: number | undefined = SLICES[0], compared = 0; most !== undefined; ) {
    const rest = { from: range.from, before }
    const slice = callsOf(list.ids, db, rest, conditions, { most, limit: limit - found.length })
    found.push(...(await entriesOf(db, slice)))
    if (found.length === limit) return { entries: found }
    const { rows } = await sql<{ id: string }>`${lastOf(list.ids, db, rest, most)}`.execute(db)
    before = rows[0]?.id
    if (before === undefined) return { entries: found }
    // Calls that were written in between bring the end of the slice nearer than what was compared.
    const last = found.at(-1)
    if (last !== undefined) before = least(before, (JSON.parse(last) as { id: string }).id)
    compared += most
    most = nextSlice(compared, performance.now() - startedAt)
  }
  return before === undefined ? { entries: found } : { entries: found, next: before }
}

function least(one: string, other: string): string {
  return other < one ? other : one
}

/** Returns the largest slice for which there is time, if all take as long as those before. */
function nextSlice(compared: number, ms: number): number | undefined {
  const room = Math.min(MAX_COMPARED - compared, (compared / ms) * (MAX_MS - ms))
  return SLICES.findLast((most) => most <= room)
}

async function callsWith(
  db: Database,
  ids: readonly string[],
  filters: readonly Filtered[],
  { from, before }: IdRange,
  limit: number,
): Promise<FoundCalls> {
  if (ids.length === 0) return { entries: [] }
  const conditions = filters.map(({ condition }) => condition)
  if (from !== undefined) conditions.push(sql`calls.id >= ${from}`)
  if (before !== undefined) conditions.push(sql`calls.id < ${before}`)
  const query = sql<{ entry: string }>`select entry from calls
    where calls.id in (${sql.join(ids)}) and ${all(conditions)} order by calls.id desc limit ${limit}`
  return { entries: await entriesOf(db, query) }
}

async function entriesOf(db: Database, query: RawBuilder<{ entry: string }>): Promise<string[]> {
  const { rows } = await query.execute(db)
  return rows.map(({ entry }) => entry)
}

/** Returns the list that goes back furthest with the same number of calls. */
async function shortest(db: Database, lists: readonly SearchList[], range: IdRange): Promise<SearchList> {
  const [first, ...others] = lists as [SearchList, ...SearchList[]]
  if (others.length === 0) return first
  const ends = lists.map(({ ids }, i) => sql`(${lastOf(ids, db, range, COMPARED)}) as ${sql.ref(`end_${i}`)}`)
  const { rows } = await sql<Record<string, string | null>>`select ${sql.join(ends)}`.execute(db)
  const endOf = (i: number) => rows[0]?.[`end_${i}`] ?? ''
  return lists.reduce((best, list, i) => (endOf(i) < endOf(lists.indexOf(best)) ? list : best), first)
}
