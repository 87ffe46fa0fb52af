import { type Kysely, PostgresIntrospector } from 'kysely'
import { anObjectWith, kindOf } from '../../../core/options/index.ts'

/** Whether a database is Postgres, for the few statements that differ. */
export function isPostgres<T>(db: Kysely<T>): boolean {
  return db.introspection instanceof PostgresIntrospector
}

export const aDatabase = anObjectWith('a database, as openDatabase returns it', 'selectFrom', 'executeQuery')

/** @throws TypeError if the database of a store is none, such as a promise of one. */
export function checkDatabase(store: string, db: unknown): void {
  if (!aDatabase.accepts(db))
    throw new TypeError(`${store}: its first argument must be ${aDatabase.be}, not ${kindOf(db)}`)
}
