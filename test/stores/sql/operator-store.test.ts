import { SqlChangeLog, SqlOperatorStore } from '../../../lib/stores/sql/index.ts'
import { operatorStoreContract } from '../../contracts/operator-store.ts'
import { emptiedDatabase } from './emptied-database.ts'
import { BACKENDS } from './postgres-database.ts'

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)
  operatorStoreContract(
    name,
    async () => {
      const { db, other } = await emptied()
      const stores = [new SqlOperatorStore(db), new SqlOperatorStore(other)] as const
      return { stores, changes: new SqlChangeLog(db), close: async () => {} }
    },
    skip,
  )
}
