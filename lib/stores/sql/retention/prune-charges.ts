import { sql } from 'kysely'
import { FIRST_ID } from '../driver/id-times.ts'
import { isPostgres } from '../driver/is-postgres.ts'
import type { Database } from '../driver/tables.ts'
import { carrySpending } from '../ledger/carry-spending.ts'

/**
 * Deletes some of the oldest charges before an id, with their voids. What they came to is carried forward. Charges whose ids tell
 * no time stay.
 *
 * @returns how many charges were deleted: fewer than the limit if there are no more.
 * @throws {NotCounted} if usage does not have one of them yet. None is deleted then.
 */
export function pruneCharges(db: Database, before: string, limit: number): Promise<number> {
  return db.transaction().execute(async (trx) => {
    // Each must see what another has deleted.
    if (isPostgres(trx))
      await sql`select pg_advisory_xact_lock(hashtext('express-model-gateway charges'))`.execute(trx)
    const next = await trx
      .selectFrom('charges')
      .select('request_id')
      .where('request_id', '>=', FIRST_ID)
      .where('request_id', '<', before)
      .orderBy('request_id')
      .offset(limit)
      .limit(1)
      .executeTakeFirst()
    const range = { from: FIRST_ID, to: next?.request_id ?? before }
    const carried = await carrySpending(trx, range)
    const { numDeletedRows } = await trx
      .deleteFrom('charges')
      .where('request_id', '>=', FIRST_ID)
      .where('request_id', '<', range.to)
      .executeTakeFirst()
    if (Number(numDeletedRows) !== carried) throw new Error('charges were written while they were deleted')
    return carried
  })
}
