import { sql } from 'kysely'
import type { CallQuery } from '../../../middleware/call-log/index.ts'
import type { Database } from '../driver/tables.ts'
import type { IdRange } from './call-lists.ts'
import { type Comparison, newestCalls, sliceOf } from './call-slices.ts'
import { planOf, type SearchList, type SearchPlan } from './search-plan.ts'

/** What a search has found, as JSON, newest first; with `next`, it has stopped there, and older calls may fit as well. */
export interface FoundCalls {
  readonly entries: readonly string[]
  readonly next?: string
}

/** So far ahead lists are compared. */
const AHEAD = 200
/** How many calls are compared at a time with the filters that the list has not. Each may be in a part that is not in memory yet. */
const SLICES = [250, 500, 1000, 2000, 4000, 8000]
/** The most entries of indexes that are read for a page, and about the longest time for it. */
const MAX_READ = 50_000
const MAX_MS = 30
/** A row of a call takes as long as so many entries of indexes, where neighbours stand side by side. */
const ROW_READS = 4
/** A row of a call is read rather than an index at so many places. */
const MANY_PLACES = 2 * ROW_READS

/**
 * Returns a page of a search. If one list has all that is asked for, the page is read from it. Else the calls of the shortest list
 * are looked up in the others, a bounded number of them: then the page may have fewer calls than it could.
 */
export async function searchCalls(db: Database, query: CallQuery, range: IdRange): Promise<FoundCalls> {
  const { ids, limit } = query
  if (ids?.length === 0) return { entries: [] }
  const plan = planOf(db, query)
  const whole = plan.lists.find(({ covers }) => plan.filters.every((name) => covers.has(name)))
  if (whole) {
    const { rows } = await newestCalls(db, whole.ids, range, limit).execute(db)
    return { entries: rows.map(({ entry }) => entry) }
  }
  const startedAt = performance.now()
  const list = await shortest(db, plan.lists, range)
  const compared = comparisonOf(plan, list)
  const reads = readsOf(list, compared)
  const entries: string[] = []
  let { before } = range
  let calls = 0
  for (let most = SLICES[0]; most !== undefined; ) {
    const size = { most, limit: limit - entries.length }
    const { rows } = await sliceOf(db, list.ids, { from: range.from, before }, compared, size).execute(db)
    for (const { entry } of rows) if (entry !== null) entries.push(entry)
    const end = rows.find(({ entry }) => entry === null)
    if (entries.length === limit || !end) return { entries }
    before = end.id
    calls += most
    const ms = performance.now() - startedAt
    const room = Math.min(MAX_READ / reads - calls, (calls / ms) * (MAX_MS - ms), 2 * most)
    most = SLICES.findLast((slice) => slice <= room)
  }
  return before === undefined ? { entries } : { entries, next: before }
}

/** Returns what calls of a list are compared with for the filters that it has not. */
function comparisonOf({ filters, lists, conditions }: SearchPlan, { covers }: SearchList): Comparison {
  let left = filters.filter((name) => !covers.has(name))
  const also = []
  for (const list of lists) {
    if (list.ids.places >= MANY_PLACES || !left.some((name) => list.covers.has(name))) continue
    also.push(list.ids)
    left = left.filter((name) => !list.covers.has(name))
  }
  return { lists: also, conditions: left.flatMap((name) => conditions.get(name) ?? []) }
}

/** Returns how many entries of indexes are read to compare a call. */
function readsOf({ ids }: SearchList, { lists, conditions }: Comparison): number {
  const places = lists.reduce((sum, list) => sum + list.places, ids.places)
  return conditions.length > 0 ? places + ROW_READS : places
}

/** Returns the list that goes back furthest with the same number of calls. */
async function shortest(db: Database, lists: readonly SearchList[], range: IdRange): Promise<SearchList> {
  const [first, ...others] = lists as [SearchList, ...SearchList[]]
  if (others.length === 0) return first
  const ends = lists.map(({ ids }, i) => {
    const listed = sql`(${ids.newest(db, range, AHEAD)}) as listed`
    return sql`(select id from ${listed} limit 1 offset ${sql.lit(AHEAD - 1)}) as ${sql.ref(`end_${i}`)}`
  })
  const { rows } = await sql<Record<string, string | null>>`select ${sql.join(ends)}`.execute(db)
  const endOf = (i: number) => rows[0]?.[`end_${i}`] ?? ''
  return lists.reduce((best, list, i) => (endOf(i) < endOf(lists.indexOf(best)) ? list : best), first)
}
