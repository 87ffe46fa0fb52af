import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { timeOfId } from '../driver/id-times.ts'
import { isPostgres } from '../driver/is-postgres.ts'
import { isLocked, TABLE_LOCK_MS } from '../driver/postgres/lock-timeout.ts'
import {
  nextPeriod,
  PARTITIONED_TABLES,
  type Partition,
  type PartitionedTable,
  partitionsOf,
} from '../driver/postgres/partitions.ts'
import type { Database } from '../driver/tables.ts'
import { carrySpending } from '../ledger/carry-spending.ts'

const TRIES = 5
const PAUSE_MS = 1000
/** A retention of so many partitions lets rows go with their partition. */
const MANY = 3

/** What became of the partitions of a table. */
export interface Dropped {
  readonly names: readonly string[]
  /** Rows before this id are still to be deleted one by one. */
  readonly before: string
}

/**
 * Drops the partitions of tables all of whose ids are before a given one. On SQLite there are none.
 *
 * @param cutoff what is before it has expired.
 * @param retentionMs tells whether the expired rows of a partition that is kept go with it later.
 * @throws an error of Postgres with the code `55P03` if a table is in use all the time.
 */
export async function dropPartitions(
  db: Database,
  names: readonly PartitionedTable['name'][],
  cutoff: string,
  retentionMs: number,
): Promise<Dropped> {
  if (!isPostgres(db)) return { names: [], before: cutoff }
  const dropped: string[] = []
  let before = cutoff
  for (const table of PARTITIONED_TABLES.filter(({ name }) => names.includes(name))) {
    const parts = await partitionsOf(db, table.name)
    for (const part of parts.filter(({ to }) => to !== null && to <= cutoff)) {
      if (part.from === null) continue
      await drop(db, table, { ...part, from: part.from, to: part.to ?? cutoff })
      dropped.push(part.name)
    }
    const kept = parts.find(({ from, to }) => from !== null && from < cutoff && (to === null || to > cutoff))
    if (kept && isShort(kept, table, retentionMs) && (kept.from ?? '') < before) before = kept.from ?? ''
  }
  return { names: dropped, before }
}

function isShort({ from }: Partition, { width }: PartitionedTable, retentionMs: number): boolean {
  const start = timeOfId(from ?? '') ?? 0
  return (nextPeriod(start, width) - start) * MANY <= retentionMs
}

/** Drops a partition. What the charges in it came to is carried forward in the same transaction. */
async function drop(
  db: Database,
  { name: table }: PartitionedTable,
  { name, from, to }: { name: string; from: string; to: string },
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await sql`set local lock_timeout = ${sql.lit(TABLE_LOCK_MS)}`.execute(trx)
    if (table === 'charges') {
      await sql`lock table ${sql.table(name)} in share row exclusive mode`.execute(trx)
      await carrySpending(trx, { from, to })
    }
    for (let tries = 1; ; tries++) {
      await sql`savepoint before_drop`.execute(trx)
      try {
        await sql`drop table ${sql.table(name)}`.execute(trx)
        return
      } catch (error) {
        if (!isLocked(error) || tries === TRIES) throw error
        await sql`rollback to savepoint before_drop`.execute(trx)
        await sleep(PAUSE_MS)
      }
    }
  })
}
