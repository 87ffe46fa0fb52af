import { SqlResourceStore } from '../../../lib/stores/sql/index.ts'
import { resourceStoreContract } from '../../contracts/resource-store.ts'
import { emptiedDatabase } from '../../stores/sql/emptied-database.ts'
import { BACKENDS } from '../../stores/sql/postgres-database.ts'

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)
  resourceStoreContract(
    name,
    async () => {
      const { db, other } = await emptied()
      return {
        stores: [new SqlResourceStore(db), new SqlResourceStore(other)] as const,
        close: async () => {},
      }
    },
    skip,
  )
}
