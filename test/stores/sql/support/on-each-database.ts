import { type EmptiedDatabase, emptiedDatabase } from './emptied-database.ts'
import { BACKENDS } from './postgres-database.ts'

interface Closable {
  close(): Promise<void>
}

/** A contract of stores: a function that adds its tests. */
type Contract<Stores extends Closable> = (
  name: string,
  open: () => Promise<Stores>,
  skip?: string | false,
) => void

/**
 * Runs a contract over SQLite and over Postgres. Each has one database for all its tests, which has no rows whenever the
 * contract opens it.
 *
 * @param storesOn makes the stores under test on a database.
 */
export function onEachDatabase<Stores extends Closable>(
  contract: Contract<Stores>,
  storesOn: (database: EmptiedDatabase) => Omit<Stores, 'close'>,
): void {
  for (const { name, url, skip } of BACKENDS) {
    const emptied = emptiedDatabase(url)
    const open = async () => ({ ...storesOn(await emptied()), close: async () => {} }) as Stores
    contract(name, open, skip)
  }
}
