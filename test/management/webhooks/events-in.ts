import { sql } from 'kysely'
import type { Database } from '../../../lib/stores/sql/index.ts'

/** Returns the type and the subject of each event in the outbox of a SQLite database, oldest first. */
export async function eventsIn(db: Database): Promise<string[]> {
  const rows = await db.selectFrom('webhook_events').select(['type', 'subject']).orderBy(sql`rowid`).execute()
  return rows.map(({ type, subject }) => `${type} ${subject}`)
}
