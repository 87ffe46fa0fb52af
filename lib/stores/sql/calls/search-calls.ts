import { type RawBuilder, sql } from 'kysely'
import type { CallQuery } from '../../../core/call-store/index.ts'
import { isPostgres } from '../driver/database.ts'
import type { Database } from '../driver/tables.ts'
import {
  LABELLED_CLASS,
  LABELLED_OUTCOMES,
  LOOK_UP,
  labelOf,
  OWN_TOOK_MS,
  ofAccount,
  TOOK_MS,
} from './call-labels.ts'

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
function labelled(...labels: readonly string[]): CallList {
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
function indexed(
  name: string,
  values: Readonly<Record<string, string | number>>,
  condition?: RawBuilder<unknown>,
): CallList {
  const cells = Object.fromEntries(Object.entries(values).map(([column, value]) => [column, sql`${value}`]))
  const index = { table: 'calls', index: name, condition }
  const equal = [...equalTo(cells), ...(condition ? [condition] : [])]
  return {
    newest: (db, range, most) => newestOf(db, index, cells, range, most),
    find: (db, id) => sql`select id from calls ${indexHint(db, index)}
      where ${all([...equal, sql`calls.id = ${id}`])} limit 1`,
    places: 1,
  }
}

/** An index that ends with the id, and the condition of its rows. */
interface Index {
  readonly table: string
  /** The index that SQLite has to use; undefined if it chooses the right one by itself. */
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
    return sql`select id from ${sql.table(table)} ${indexHint(db, index)}
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

function all(conditions: readonly RawBuilder<unknown>[]): RawBuilder<unknown> {
  return conditions.length === 0 ? sql`true` : sql.join(conditions, sql` and `)
}

/** Returns the clause that names the index for SQLite; it is empty for Postgres. */
function indexHint(db: Database, { index }: Index): RawBuilder<unknown> {
  return index === undefined || isPostgres(db) ? sql`` : sql`indexed by ${sql.ref(index)}`
}

/** Returns the list of all calls, or of those with some ids, and with some columns. */
function calls(ids?: readonly string[]): CallList {
  const among = ids ? [sql`calls.id in (${sql.join(ids)})`] : []
  return {
    newest: (_, range, most) => sql`select id from calls where ${all([...among, ...within(range)])}
      order by id desc limit ${sql.lit(most)}`,
    find: (_, id) => sql`select id from calls where ${all([...among, sql`calls.id = ${id}`])} limit 1`,
    places: 1,
  }
}

/** A list of calls, and the filters that each of them passes. */
export interface SearchList {
  readonly ids: CallList
  readonly covers: ReadonlySet<string>
}

export interface SearchPlan {
  readonly filters: readonly string[]
  /** Each has all calls of the query; there is one at least. */
  readonly lists: readonly SearchList[]
  /** The condition on a call for a filter that a list may not have. */
  readonly conditions: ReadonlyMap<string, RawBuilder<unknown>>
}

/** Returns how a query may be done, but for its times. */
function planOf(db: Database, query: CallQuery): SearchPlan {
  const { account, ids, key, line, minDurationMs = 0 } = query
  const lists: SearchList[] = []
  const add = (list: CallList, ...covers: string[]) => void lists.push({ ids: list, covers: new Set(covers) })
  if (ids !== undefined) add(calls(ids), 'ids')
  if (account === undefined) for (const [name, label] of labelsOfAll(query)) add(labelled(label), name)
  else for (const [name, list] of ownLists(account, query)) add(list, name, 'account')
  if (minDurationMs > 0) {
    const labels = tookFrom(minDurationMs).map((ms) => labelOf('took', ms))
    const covered = TOOK_MS.includes(minDurationMs) ? ['duration'] : []
    if (account === undefined || minDurationMs < OWN_TOOK_MS) add(labelled(...labels), ...covered)
    else add(labelled(...labels.map((label) => ofAccount(account, label))), 'account', ...covered)
  }
  if (key !== undefined) add(labelled(labelOf('key', key)), 'key')
  if (line !== undefined) add(labelled(labelOf('line', line)), 'line')
  if (account !== undefined && !lists.some(({ covers }) => covers.has('account')))
    add(indexed('calls_by_account', { account }), 'account')
  if (lists.length === 0) add(calls())
  const conditions = conditionsOf(db, query)
  const covered = lists.flatMap(({ covers }) => [...covers])
  return { filters: [...new Set([...covered, ...conditions.keys()])], lists, conditions }
}

/** Returns the lists within an account. */
function ownLists(account: string, query: CallQuery): [name: string, ids: CallList][] {
  const { model, status, code } = query
  const lists: [string, CallList][] = labelsIn(query).map(([name, label]) => [
    name,
    labelled(ofAccount(account, label)),
  ])
  if (model !== undefined) lists.push(['model', indexed('calls_by_model', { account, model })])
  // As literals, so that SQLite matches them with the conditions of the indexes: for that it does not look at parameters.
  if (status !== undefined && status !== 200)
    lists.push(['status', indexed('calls_by_status', { account, status }, sql`status <> 200`)])
  if (code !== undefined)
    lists.push([
      'code',
      indexed('calls_by_error', { account, error_code: code }, sql`error_code is not null`),
    ])
  return lists
}

/** Returns the labels that calls of all accounts have together. */
function labelsOfAll(query: CallQuery): [name: string, label: string][] {
  const { model, status, code } = query
  const labels = labelsIn(query)
  if (model !== undefined) labels.push(['model', labelOf('model', model)])
  if (status !== undefined && status !== 200) labels.push(['status', labelOf('status', status)])
  if (code !== undefined) labels.push(['code', labelOf('code', code)])
  return labels
}

/** Returns the labels that calls have within their account too. */
function labelsIn(query: CallQuery): [name: string, label: string][] {
  const { user, tags = {}, clientRequestId, statusClass = 0, outcome, counted } = query
  const labels: [string, string][] = []
  if (clientRequestId !== undefined) labels.push(['client', labelOf('client', clientRequestId)])
  if (user !== undefined) labels.push(['user', labelOf('user', user)])
  for (const name in tags) labels.push([`tag ${name}`, labelOf('tag', `${name}=${tags[name]}`)])
  if (outcome !== undefined && outcome !== 'completed') labels.push(['outcome', labelOf('outcome', outcome)])
  if (counted !== undefined && counted !== 'requests') labels.push(['counted', labelOf('counted', counted)])
  if (statusClass >= LABELLED_CLASS) labels.push(['class', labelOf('status', statusClass)])
  return labels
}

/** Returns the labelled durations that calls reach which take as long or longer. */
function tookFrom(minDurationMs: number): readonly number[] {
  const from = TOOK_MS.findLastIndex((ms) => ms <= minDurationMs)
  return TOOK_MS.slice(from)
}

function conditionsOf(db: Database, query: CallQuery): Map<string, RawBuilder<unknown>> {
  const { account, status, statusClass, minDurationMs = 0, outcome, counted } = query
  const conditions = new Map<string, RawBuilder<unknown>>()
  if (account !== undefined) conditions.set('account', sql`calls.account = ${account}`)
  if (status !== undefined) conditions.set('status', sql`calls.status = ${status}`)
  if (statusClass !== undefined)
    conditions.set(
      'class',
      sql`calls.status >= ${statusClass * 100} and calls.status < ${statusClass * 100 + 100}`,
    )
  if (outcome === 'completed')
    conditions.set('outcome', without(...LABELLED_OUTCOMES.map((other) => labelOf('outcome', other))))
  if (counted === 'requests') conditions.set('counted', without(LOOK_UP))
  if (minDurationMs > 0) conditions.set('duration', sql`${durationIn(db)} >= ${minDurationMs}`)
  return conditions
}

/** Returns the condition that a call has none of some labels, which is looked up for each call that is compared. */
function without(...labels: readonly string[]): RawBuilder<unknown> {
  return sql`(select 1 from call_labels as other
    where other.label in (${sql.join(labels)}) and other.id = calls.id limit 1) is null`
}

/**
 * Postgres reads no JSON in which a caller's text has U+0000 or half a character. No text has a quote without a backslash in it, and
 * the duration of the call stands before those of its attempts.
 */
function durationIn(db: Database): RawBuilder<number> {
  const text = isPostgres(db)
    ? sql`substring(calls.entry from '"duration_ms":(\\d+)')`
    : sql`calls.entry ->> '$.duration_ms'`
  return sql`cast(${text} as bigint)`
}

/** The filters that calls of a list are compared with. */
export interface Comparison {
  /** Lists that must have them too. */
  readonly lists: readonly CallList[]
  /** The condition on their rows. */
  readonly conditions: readonly RawBuilder<unknown>[]
}

/** A row of a slice: a call, or without an entry the last id that was compared. */
export interface SliceRow {
  readonly id: string
  readonly entry: string | null
}

function newestCalls(
  db: Database,
  list: CallList,
  range: IdRange,
  limit: number,
): RawBuilder<{ id: string; entry: string }> {
  const listed = sql`(${list.newest(db, range, limit)}) as listed`
  return matching(db, listed, { lists: [], conditions: [] }, limit)
}

/**
 * Returns the query of the newest calls of a list that pass a comparison. It reads at most `most` ids of the list.
 * If the list has as many, one more row holds the last of them.
 */
function sliceOf(
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
  // One after the other for each call, independently of the estimates of the planner.
  const joined: RawBuilder<unknown>[] = []
  let id = sql.ref('listed.id')
  for (const [i, list] of lists.entries()) {
    joined.push(sql`cross join lateral (${list.find(db, id)}) as ${sql.ref(`also_${i}`)}`)
    id = sql.ref(`also_${i}.id`)
  }
  return sql`select found.id, found.entry from ${listed} ${sql.join(joined, sql` `)} cross join lateral
    (select id, entry from calls where ${all([sql`calls.id = ${id}`, ...conditions])} limit 1) as found ${newest}`
}

/** The calls that a search has found, as JSON, newest first; with `next`, it has stopped there, and older calls may fit as well. */
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
