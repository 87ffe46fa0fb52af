import { type Kysely, sql } from 'kysely'
import type { Logger } from '../../../../core/call/index.ts'
import { isPostgres } from '../database.ts'
import { firstIdOf } from '../id-times.ts'
import type { Database } from '../tables.ts'
import { transact } from '../transact.ts'
import { UpkeepLease } from '../upkeep-lease.ts'
import { isLocked, TABLE_LOCK_MS } from './lock-timeout.ts'
import { connectionsOf } from './postgres-dialect.ts'

/*
 * With the option `partitions`, tables that grow with the calls are divided by time: by ranges of their request ids, which sort by
 * time. So ids stay unique in a whole table, and a look-up by id reads one part. A row whose id is in no range is in the default
 * partition. Only Postgres itself can do this.
 */

/** Whether a database was opened with the option. */
export function hasPartitions<T>(db: Kysely<T>): boolean {
  return isPostgres(db) && connectionsOf(db).partitions
}

/** A table that is divided by time. */
export interface PartitionedTable {
  readonly name: 'calls' | 'call_labels' | 'answers' | 'charges'
  readonly column: 'id' | 'request_id'
  readonly width: Width
}

/** How much time a partition has: days that begin on a Monday, or a month, both in UTC. */
export type Width = 'week' | 'month'

/** Expired calls are many, and are soon deleted; charges are kept for years. */
export const PARTITIONED_TABLES: readonly PartitionedTable[] = [
  { name: 'charges', column: 'request_id', width: 'month' },
  { name: 'calls', column: 'id', width: 'week' },
  { name: 'call_labels', column: 'id', width: 'week' },
  { name: 'answers', column: 'id', width: 'week' },
]

/** How many partitions there are for times to come. A process that only opens the database may run for that long. */
const AHEAD: Readonly<Record<Width, number>> = { week: 2, month: 1 }

/** A part of a table: the request ids from one on, before another. Null: without an end. */
export interface Partition {
  readonly name: string
  readonly from: string | null
  readonly to: string | null
}

const DAY_MS = 86_400_000
/** The epoch was a Thursday. */
const MONDAY = 4

/** Returns where the period of a time begins. */
export function periodStart(time: number, width: Width): number {
  const date = new Date(time)
  if (width === 'month') return Date.UTC(date.getUTCFullYear(), date.getUTCMonth())
  const day = Math.floor(time / DAY_MS)
  return (day - ((((day - MONDAY) % 7) + 7) % 7)) * DAY_MS
}

export function nextPeriod(start: number, width: Width): number {
  if (width === 'week') return start + 7 * DAY_MS
  const date = new Date(start)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)
}

/** Returns the partitions of a table by their order, without the default one. */
export async function partitionsOf(db: Database, table: PartitionedTable['name']): Promise<Partition[]> {
  const { rows } = await sql<{ name: string; bounds: string }>`
    select part.relname as name, pg_get_expr(part.relpartbound, part.oid) as bounds
    from pg_inherits join pg_class as part on part.oid = inhrelid
    where inhparent = to_regclass(${table})`.execute(db)
  const parts = rows.flatMap(({ name, bounds }) => {
    const [, from, to] = /^FOR VALUES FROM \((.*)\) TO \((.*)\)$/.exec(bounds) ?? []
    return from === undefined || to === undefined ? [] : [{ name, from: boundOf(from), to: boundOf(to) }]
  })
  return parts.sort((one, other) => ((one.from ?? '') < (other.from ?? '') ? -1 : 1))
}

function boundOf(text: string): string | null {
  return text.startsWith("'") ? text.slice(1, -1) : null
}

/**
 * Makes the partitions that are missing, in one process at a time. Does nothing for a database that was opened without the option.
 *
 * @throws Error if its tables were created without the option.
 */
export async function keepPartitions(db: Database, logger: Logger): Promise<void> {
  if (!hasPartitions(db)) return
  if ((await partitionsOf(db, 'calls')).length === 0)
    throw new Error('its tables are not divided: partitions must be on when the tables are created')
  const lease = new UpkeepLease(db, 'partitions')
  try {
    if (await lease.take()) await makePartitions(db, Date.now(), logger).finally(() => lease.free())
  } catch (error) {
    // Without them, rows go into the default partition.
    logger.error({ err: error }, 'partitions for the calls to come could not be made')
  }
}

/**
 * Makes the partitions of the current period and of some to come, where they are missing. A period of which rows are in the default
 * partition gets none.
 *
 * @returns the names of the new partitions. One that cannot be made now, because the default partition is in use, is left for
 *   the next time; that is logged.
 */
export async function makePartitions(db: Database, now: number, logger: Logger): Promise<string[]> {
  const made: string[] = []
  for (const table of PARTITIONED_TABLES) {
    try {
      if ((await missingOf(db, table, now)).length === 0) continue
      made.push(...(await transact(db, (trx) => makeMissing(trx, table, now))))
    } catch (error) {
      if (!isLocked(error)) throw error
      logger.info({ table: table.name }, 'a partition is made later: others use the table')
    }
  }
  return made
}

interface Missing extends Partition {
  readonly from: string
  readonly to: string
}

async function missingOf(db: Database, table: PartitionedTable, now: number): Promise<Missing[]> {
  const parts = await partitionsOf(db, table.name)
  const missing: Missing[] = []
  let start = periodStart(now, table.width)
  for (let i = 0; i <= AHEAD[table.width]; i++) {
    const end = nextPeriod(start, table.width)
    const name = `${table.name}_${new Date(start).toISOString().slice(0, 10).replaceAll('-', '')}`
    const part = { name, from: firstIdOf(start), to: firstIdOf(end) }
    if (!parts.some((other) => overlaps(other, part))) missing.push(part)
    start = end
  }
  return missing
}

function overlaps(one: Partition, { from, to }: Missing): boolean {
  return (one.from === null || one.from < to) && (one.to === null || one.to > from)
}

async function makeMissing(trx: Database, table: PartitionedTable, now: number): Promise<string[]> {
  await sql`set local lock_timeout = ${sql.lit(TABLE_LOCK_MS)}`.execute(trx)
  const made: string[] = []
  for (const { name, from, to } of await missingOf(trx, table, now)) {
    const [whole, part, rest] = [sql.table(table.name), sql.table(name), sql.table(`${table.name}_default`)]
    const id = sql.ref(table.column)
    const { rows } =
      await sql`select 1 from ${rest} where ${id} >= ${from} and ${id} < ${to} limit 1`.execute(trx)
    if (rows.length > 0) continue
    // Attached, unlike made in its place, it holds up no write to the others.
    await sql`create table ${part} (like ${whole} including all)`.execute(trx)
    await sql`alter table ${whole} attach partition ${part}
      for values from (${sql.lit(from)}) to (${sql.lit(to)})`.execute(trx)
    made.push(name)
  }
  return made
}
