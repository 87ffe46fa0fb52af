import type { RecordedChange } from '../../../../lib/management/index.ts'
import type { Database } from '../../../../lib/stores/sql/index.ts'

/** Returns what the change log of a database has, the oldest first. */
export async function changesIn(db: Database): Promise<RecordedChange[]> {
  const rows = await db.selectFrom('admin_changes').selectAll().orderBy('id').execute()
  return rows.map(({ id, at, before, after, ...rest }) => ({
    ...rest,
    requestId: id,
    at: Number(at),
    before: before === null ? null : JSON.parse(before),
    after: JSON.parse(after),
  }))
}
