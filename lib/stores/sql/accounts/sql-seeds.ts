import type { Seeds } from '../../../endpoints/admin/index.ts'
import { checkDatabase } from '../driver/check-database.ts'
import type { Database } from '../driver/tables.ts'

/** The ids that configs have added to a database, and those of deleted keys. */
export class SqlSeeds implements Seeds {
  readonly #db: Database

  constructor(db: Database) {
    checkDatabase('SqlSeeds', db)
    this.#db = db
  }

  list(): ReturnType<Seeds['list']> {
    return this.#db.selectFrom('seeds').select(['kind', 'id']).execute()
  }
}
