import { type Kysely, sql } from 'kysely'
import { firstIdOf } from '../id-times.ts'
import { isPostgres } from '../is-postgres.ts'

/*
 * The tables that grow with the calls are divided by time in three steps, so that none of them reads a large table while others
 * wait: a table gets a constraint which its present rows need not meet, the rows are compared with it, and then the table is the
 * first partition of a new one, which the constraint allows without reading it again.
 */

const TABLES = { charges: 'request_id', calls: 'id', call_labels: 'id', answers: 'id' } as const

/**
 * How far the first partition reaches. Until the third step, rows behind it would be refused: an update that stops between the
 * steps can be taken up again for so long.
 */
const REACH_MS = 31 * 86_400_000
const WEEK_MS = 7 * 86_400_000
/** A Monday. */
const FIRST_WEEK_MS = 4 * 86_400_000

export async function up(db: Kysely<unknown>): Promise<void> {
  if (!isPostgres(db)) return
  for (const [table, column] of Object.entries(TABLES)) {
    const [name, id] = [sql.table(table), sql.ref(column)]
    const bound = firstIdOf(boundOf(table, Date.now() + REACH_MS))
    const { rows } = await sql<{ last: string | null }>`select max(${id}) as last from ${name}`.execute(db)
    const last = rows[0]?.last ?? null
    // Few rows are soon read in the third step. Ids of another kind may come again.
    if (last === null || last >= bound) continue
    await sql`alter table ${name} add constraint ${sql.ref(`${table}_until`)}
      check (${id} < ${sql.lit(bound)}) not valid`.execute(db)
  }
}

function boundOf(table: string, time: number): number {
  if (table !== 'charges') return Math.ceil((time - FIRST_WEEK_MS) / WEEK_MS) * WEEK_MS + FIRST_WEEK_MS
  const date = new Date(time)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)
}

export async function down(db: Kysely<unknown>): Promise<void> {
  if (!isPostgres(db)) return
  for (const table of Object.keys(TABLES))
    await sql`alter table ${sql.table(table)} drop constraint if exists ${sql.ref(`${table}_until`)}`.execute(
      db,
    )
}
