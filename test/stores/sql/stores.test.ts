import {
  type Database,
  openDatabase,
  SqlCallStore,
  SqlKeyDirectory,
  seedAccountsAndKeys,
} from '../../../lib/stores/sql/index.ts'
import { callStoreContract } from '../../contracts/call-store.ts'
import { keyDirectoryContract } from '../../contracts/key-directory.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { emptiedDatabase } from './support/emptied-database.ts'
import { BACKENDS } from './support/postgres-database.ts'

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)
  const cleanUp = cleaningUp()
  let readOnly: Promise<Database> | undefined

  async function openReadOnly(): Promise<Database> {
    const searches = await openDatabase((await emptied()).url, { readOnly: true })
    cleanUp.after(() => searches.destroy())
    return searches
  }

  callStoreContract(
    name,
    async () => ({ store: new SqlCallStore((await emptied()).db), close: async () => {} }),
    skip,
  )

  callStoreContract(
    `${name}, searched through a handle of its own`,
    async () => {
      const { db } = await emptied()
      readOnly ??= openReadOnly()
      return { store: new SqlCallStore(db, { searches: await readOnly }), close: async () => {} }
    },
    skip,
  )

  keyDirectoryContract(
    name,
    async (seed) => {
      const { db } = await emptied()
      await seedAccountsAndKeys(db, seed)
      return { keys: new SqlKeyDirectory(db), close: async () => {} }
    },
    skip,
  )
}
