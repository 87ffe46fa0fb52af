import type { LeaseRecord } from '../../../../lib/ledger/lease.ts'
import type { Database } from '../../../../lib/stores/sql/driver/tables.ts'

/** Writes leases as they are. */
export async function saveLeases(db: Database, leases: readonly LeaseRecord[]): Promise<void> {
  const rows = leases.map(({ lastMoved, renewedAt, endedAt, ...lease }) => ({
    ...lease,
    last_moved: lastMoved,
    renewed_at: BigInt(renewedAt),
    ended_at: endedAt === null ? null : BigInt(endedAt),
  }))
  await db.insertInto('leases').values(rows).execute()
}
