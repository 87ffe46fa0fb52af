import { sql } from 'kysely'
import { HOUR_MS } from '../../../core/usage/index.ts'
import type { Database } from '../driver/tables.ts'
import { GRAIN, monthOf } from './usage-tally.ts'

const DELETED_AT_ONCE = 500
const FINE = [GRAIN.fineHour, GRAIN.fineDay, GRAIN.fineMonth]

/** The name of the mark of {@link pruneUsage}. */
const FINE_FROM = 'fine_from'

/**
 * Deletes usage of single users and tags from before the month of a time, some rows at a time. It is noted first from when on all of it is
 * there.
 *
 * @returns whether there may be more.
 */
export async function pruneUsage(db: Database, before: number): Promise<boolean> {
  // A time that is out of range is before all usage.
  const hour = monthOf(Math.floor(Math.max(0, before) / HOUR_MS))
  const [oldest] = await db
    .selectFrom('usage')
    .select('hour')
    .where('grain', 'in', FINE)
    .where('hour', '<', BigInt(hour))
    .limit(1)
    .execute()
  if (!oldest) return false
  const mark = String(hour).padStart(10, '0')
  await sql`insert into usage_marks (name, mark) values (${FINE_FROM}, ${mark})
    on conflict (name) do update set mark = excluded.mark where usage_marks.mark < excluded.mark`.execute(db)
  const { numAffectedRows } = await sql`delete from usage where (account, grain, hour, digest) in
    (select account, grain, hour, digest from usage
      where grain in (${sql.join(FINE)}) and hour < ${BigInt(hour)} limit ${DELETED_AT_ONCE})`.execute(db)
  return Number(numAffectedRows ?? 0) > 0
}

/** Returns the hour from which on all usage of single users and tags is there. */
export async function fineFrom(db: Database): Promise<bigint> {
  const found = await db
    .selectFrom('usage_marks')
    .select('mark')
    .where('name', '=', FINE_FROM)
    .executeTakeFirst()
  return BigInt(found?.mark ?? 0)
}
