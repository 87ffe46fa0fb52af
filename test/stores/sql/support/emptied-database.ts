import { sql } from 'kysely'
import { type Database, type OpenDatabaseOptions, openDatabase } from '../../../../lib/stores/sql/index.ts'
import { type CleanUp, cleaningUp } from '../../../support/clean-up.ts'
import { PATIENT } from './temporary-database.ts'

/** A database without the rows of the test before, and two handles of it, as two processes have them. */
export interface EmptiedDatabase {
  readonly url: string
  readonly db: Database
  readonly other: Database
}

/** With the rows that its tables had at first, and a handle that reaches it directly. */
interface Opened extends EmptiedDatabase {
  readonly first: ReadonlyMap<string, object[]>
  readonly direct: Database
}

/** Options of the handles, and the address through which they reach the database. */
interface Reached extends OpenDatabaseOptions {
  /** Defaults to the URL itself. */
  readonly via?: (url: string) => Promise<string>
}

/**
 * Opens a database once for many tests, because that takes longer than most of them. Called where `describe` would be.
 *
 * @param url where to get a database that has the tables and no rows.
 */
export function emptiedDatabase(
  url: (t: CleanUp) => Promise<string>,
  { via, ...options }: Reached = {},
): () => Promise<EmptiedDatabase> {
  const cleanUp = cleaningUp()
  let opened: Promise<Opened> | undefined
  const open = async () => {
    const at = await url(cleanUp)
    const openAt = async (place: string) => {
      const handle = await openDatabase(place, { ...PATIENT, ...options })
      cleanUp.after(() => handle.destroy())
      return handle
    }
    const reached = (await via?.(at)) ?? at
    const [db, other] = [await openAt(reached), await openAt(reached)]
    const direct = via ? await openAt(at) : db
    const first = new Map<string, object[]>()
    for (const { name } of await direct.introspection.getTables()) first.set(name, await rowsOf(direct, name))
    return { url: reached, db, other, direct, first }
  }
  return async () => {
    const isNew = opened === undefined
    opened ??= open()
    const { first, direct, ...database } = await opened
    if (!isNew) await restore(direct, first)
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
