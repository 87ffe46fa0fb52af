import { SqlChangeLog, SqlSessionStore } from '../../../lib/stores/sql/index.ts'
import { sessionStoreContract } from '../../contracts/session-store.ts'
import { emptiedDatabase } from './emptied-database.ts'
import { BACKENDS } from './postgres-database.ts'

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)
  sessionStoreContract(
    name,
    async () => {
      const { db, other } = await emptied()
      const stores = [new SqlSessionStore(db), new SqlSessionStore(other)] as const
      return { stores, changes: new SqlChangeLog(db), close: async () => {} }
    },
    skip,
  )
}
