import { sql } from 'kysely'
import { type Database, openDatabase } from '../../../lib/stores/sql/index.ts'
import { type CleanUp, cleaningUp } from '../../support/clean-up.ts'
import { PATIENT } from './temporary-database.ts'

/** A database without the rows of the test before, and two handles of it, as two processes have them. */
export interface EmptiedDatabase {
  readonly url: string
  readonly db: Database
  readonly other: Database
}

/**
 * Opens a database once for many tests, because that takes longer than most of them. Called where `describe` would be.
 *
 * @param url where to get a database that has the tables and no rows.
 */
export function emptiedDatabase(url: (t: CleanUp) => Promise<string>): () => Promise<EmptiedDatabase> {
  const cleanUp = cleaningUp()
  let opened: Promise<EmptiedDatabase & { first: ReadonlyMap<string, object[]> }> | undefined
  const open = async () => {
    const at = await url(cleanUp)
    const [db, other] = [await openDatabase(at, PATIENT), await openDatabase(at, PATIENT)]
    cleanUp.after(() => Promise.all([db.destroy(), other.destroy()]))
    const first = new Map<string, object[]>()
    for (const { name } of await db.introspection.getTables()) first.set(name, await rowsOf(db, name))
    return { url: at, db, other, first }
  }
  return async () => {
    const isNew = opened === undefined
    opened ??= open()
    const { first, ...database } = await opened
    if (!isNew) await restore(database.db, first)
    return database
  }
}

/** Leaves in each table what it had at first. */
async function restore(db: Database, first: ReadonlyMap<string, object[]>): Promise<void> {
  const filled = await filledTables(db, [...first.keys()])
  // Keys refer to accounts.
  for (const table of filled.sort(
    (one, other) => Number(one === 'accounts') - Number(other === 'accounts'),
  )) {
    await sql`delete from ${sql.table(table)}`.execute(db)
    const rows = first.get(table) ?? []
    if (rows.length > 0)
      await db
        .insertInto(table as 'accounts')
        .values(rows as never)
        .execute()
  }
}

async function filledTables(db: Database, names: readonly string[]): Promise<string[]> {
  const each = names.map(
    (name) => sql`select ${sql.lit(name)} as name where exists (select 1 from ${sql.table(name)})`,
  )
  const { rows } = await sql<{ name: string }>`${sql.join(each, sql` union all `)}`.execute(db)
  return rows.map(({ name }) => name)
}

async function rowsOf(db: Database, table: string): Promise<object[]> {
  return (await sql<object>`select * from ${sql.table(table)}`.execute(db)).rows
}
