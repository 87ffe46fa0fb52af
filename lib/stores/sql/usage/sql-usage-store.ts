import { type RawBuilder, sql } from 'kysely'
import {
  HOUR_MS,
  isFine,
  MINUTE_MS,
  type UsageGroup,
  type UsageQuery,
  type UsageRow,
  type UsageStore,
} from '../../../core/usage/index.ts'
import { checkDatabase, isPostgres } from '../driver/database.ts'
import { halvedSum } from '../driver/halved-sum.ts'
import { encodeText } from '../driver/postgres/postgres-values.ts'
import type { Database } from '../driver/tables.ts'
import { AMOUNTS, FIGURES, GRAIN, monthOf, sumsOf } from './usage-tally.ts'

/** A row of {@link usageQuery}: the groups are `g0`, `g1` …, times in hours, or in minutes for those. */
export type ReadRow = Readonly<Record<string, string | bigint | number>>

/** Returns the query for a page of usage. */
function usageQuery(db: Database, query: UsageQuery): RawBuilder<ReadRow> {
  const { groupBy, after, limit } = query
  const groups = groupBy.map((group) => groupIn(db, group, query))
  const names = groups.map((_, i) => sql.ref(`g${i}`))
  const sums = FIGURES.flatMap((name) =>
    AMOUNTS.includes(name) ? halvedSum(name) : [sql`sum(${sql.ref(name)})`.as(name)],
  )
  const columns = sql.join([...groups.map((group, i) => sql`${group} as ${names[i]}`), ...sums])
  const summed = sql`select ${columns} from (${sql.join(partsOf(db, query), sql` union all `)}) as part`
  if (groups.length === 0) return sql`select * from (${summed}) as summed where ${COUNTED}`
  const places = sql.raw(groups.map((_, i) => i + 1).join())
  const behind =
    after === undefined
      ? sql`true`
      : sql`(${sql.join(names)}) > (${sql.join(after.map((value, i) => (typeof value === 'number' ? BigInt(value / unitOf(groupBy[i])) : value)))})`
  return sql`select * from (${summed} group by ${places}) as summed where ${behind} and (${COUNTED}) order by ${places} limit ${limit}`
}

/** Leaves out rows of charges that were all undone. */
const COUNTED = sql.raw(
  FIGURES.map((name) =>
    AMOUNTS.includes(name) ? `${name}_high * 4294967296 + ${name}_low <> 0` : `${name} <> 0`,
  ).join(' or '),
)

/** Returns the unit of the times of a group, in milliseconds. */
function unitOf(group: UsageGroup | undefined): number {
  return group === 'minute' ? MINUTE_MS : HOUR_MS
}

/** A length of time that rows have, in minutes. */
interface Span {
  readonly grain: number
  /** How long it is at most. */
  readonly length: number
  /** Returns where the one begins that a minute is in. */
  readonly begin: (minute: number) => number
}

const HOUR = 60
const DAY = 24 * HOUR
const MINUTES: Span = { grain: GRAIN.fineMinute, length: 1, begin: (minute) => minute }
const HOURS: Span = { grain: GRAIN.hour, length: HOUR, begin: (minute) => minute - (minute % HOUR) }
const DAYS: Span = { grain: GRAIN.day, length: DAY, begin: (minute) => minute - (minute % DAY) }
const FINE_HOURS: Span = { ...HOURS, grain: GRAIN.fineHour }
const FINE_DAYS: Span = { ...DAYS, grain: GRAIN.fineDay }
const FINE_MONTHS: Span = {
  grain: GRAIN.fineMonth,
  length: 31 * DAY,
  begin: (minute) => monthOf(Math.floor(minute / HOUR)) * HOUR,
}

/** Returns queries of the rows that together have all of a time: of months, days or hours where they are whole, else of minutes. */
function partsOf(db: Database, query: UsageQuery): RawBuilder<unknown>[] {
  const { groupBy } = query
  const from = Math.floor(query.from / MINUTE_MS)
  const to = Math.floor(query.to / MINUTE_MS)
  const [hours, days, months] = isFine(query) ? [FINE_HOURS, FINE_DAYS, FINE_MONTHS] : [HOURS, DAYS]
  const spans = [MINUTES]
  if (!groupBy.includes('minute')) spans.unshift(hours)
  if (!groupBy.includes('minute') && !groupBy.includes('hour')) {
    spans.unshift(days)
    if (months && !groupBy.includes('day')) spans.unshift(months)
  }
  // The future is empty: the present day and month are read as if they were over.
  const isToPresent = query.to > Date.now()
  return tiled(spans, from, to, isToPresent).map(([grain, begin, end]) =>
    partOf(db, query, grain, begin, end),
  )
}

/** Divides a time into the longest spans, of which it has whole ones, and the rest of it into shorter ones. */
function tiled(
  [longest, ...shorter]: readonly Span[],
  from: number,
  to: number,
  isToPresent: boolean,
): (readonly [grain: number, from: number, to: number])[] {
  if (!longest || from >= to) return []
  const { grain, length, begin } = longest
  if (shorter.length === 0) return [[grain, from, to]]
  const upTo = (minute: number) => (begin(minute) === minute ? minute : begin(begin(minute) + length))
  const first = upTo(from)
  const last = isToPresent ? upTo(to) : begin(to)
  if (first >= last) return tiled(shorter, from, to, isToPresent)
  return [
    ...tiled(shorter, from, first, false),
    [grain, first, last],
    ...tiled(shorter, last, to, isToPresent),
  ]
}

const NAMES = ['account', 'key', 'model', 'line', 'user_id', 'tags']

function partOf(
  db: Database,
  query: UsageQuery,
  grain: number,
  from: number,
  to: number,
): RawBuilder<unknown> {
  const { account, key, model, line, user, tags = {}, groupBy } = query
  const isMinutes = grain === GRAIN.fineMinute
  const unit = isMinutes ? 1 : HOUR
  const time = isMinutes && !groupBy.includes('minute') ? sql`hour / ${sql.lit(HOUR)} as hour` : sql`hour`
  const columns = sql.join([
    time,
    ...NAMES.map((name) => sql.ref(name)),
    ...FIGURES.map((name) => sql.ref(name)),
  ])
  const conditions = [
    sql`grain = ${sql.lit(grain)} and hour >= ${BigInt(from / unit)} and hour < ${BigInt(to / unit)}`,
  ]
  if (account !== undefined) conditions.push(sql`account = ${account}`)
  if (key !== undefined) conditions.push(sql`key = ${key}`)
  if (model !== undefined) conditions.push(sql`model = ${model}`)
  if (line !== undefined) conditions.push(sql`line = ${line}`)
  if (user !== undefined) conditions.push(sql`user_id = ${user}`)
  for (const [name, value] of Object.entries(tags)) conditions.push(sql`${tagIn(db, name)} = ${value}`)
  return sql`select ${columns} from usage where ${sql.join(conditions, sql` and `)}`
}

function groupIn(db: Database, group: UsageGroup, { from, to }: UsageQuery): RawBuilder<unknown> {
  switch (group) {
    case 'minute':
    case 'hour':
      return sql`hour`
    case 'day':
      return sql`hour - hour % 24`
    case 'month':
      return monthIn(from, to)
    case 'account':
    case 'key':
    case 'model':
    case 'line':
      return sql.ref(group)
    case 'user':
      return sql`user_id`
    default:
      return tagIn(db, group.slice('tag:'.length))
  }
}

/** The names of tags have no quotes. */
function tagIn(db: Database, name: string): RawBuilder<string> {
  if (!isPostgres(db)) return sql`coalesce(json_extract(tags, ${sql.lit(`$."${name}"`)}), '')`
  // As it is written there: a literal is no parameter.
  return sql`coalesce(tags::json ->> ${sql.lit(encodeText(name))}, '') collate "C"`
}

/** The beginning of the month of an hour. Neither database knows the months of the other's times. */
function monthIn(from: number, to: number): RawBuilder<bigint> {
  const cases: RawBuilder<unknown>[] = []
  const first = new Date(from)
  for (let i = 0; ; i++) {
    const begin = Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + i)
    const end = Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + i + 1)
    cases.push(sql`when hour < ${sql.lit(end / HOUR_MS)} then ${sql.lit(begin / HOUR_MS)}`)
    if (end >= to) return sql`cast(case ${sql.join(cases, sql` `)} end as bigint)`
  }
}

const DAY_MS = 24 * HOUR_MS

/**
 * Reads the usage that `SqlLedger` and `SqlCallStore` have counted in a database. Give it a read-only handle: a query may take
 * long.
 *
 * @example
 * const store = new SqlUsageStore(await openDatabase('sqlite:.data/gateway.db', { readOnly: true }))
 * app.use('/v1', usageRoutes({ store }))
 */
export class SqlUsageStore implements UsageStore {
  readonly #db: Database

  constructor(db: Database) {
    checkDatabase('SqlUsageStore', db)
    this.#db = db
  }

  async read(query: UsageQuery): Promise<UsageRow[]> {
    const { groupBy, after, limit, to } = query
    // No statement reads no hours.
    if (query.from >= to) return []
    if (groupBy.length === 1 || !['minute', 'hour', 'day'].includes(groupBy[0] ?? ''))
      return this.#read(query)
    // The rows of a page are those of the first days: the others need not be read.
    const rows: UsageRow[] = []
    let from = Math.max(query.from, Number(after?.[0] ?? 0))
    for (let days = 1; from < to && rows.length < limit; days *= 2) {
      const end = Math.min(to, from - (from % DAY_MS) + days * DAY_MS)
      rows.push(...(await this.#read({ ...query, from, to: end, limit: limit - rows.length })))
      from = end
    }
    return rows
  }

  async #read(query: UsageQuery): Promise<UsageRow[]> {
    const { rows } = await usageQuery(this.#db, query).execute(this.#db)
    return rows.map((row) => ({
      groups: query.groupBy.map((group, i) => {
        const value = row[`g${i}`] as string | bigint | number
        return typeof value === 'string' ? value : Number(value) * unitOf(group)
      }),
      sums: sumsOf(row as Record<string, bigint | number>),
    }))
  }
}
