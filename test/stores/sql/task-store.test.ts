import { SqlCallStore, SqlIdempotencyStore, SqlLedger, SqlTaskStore } from '../../../lib/stores/sql/index.ts'
import { taskStoreContract } from '../../contracts/task-store.ts'
import { emptiedDatabase } from './emptied-database.ts'
import { BACKENDS } from './postgres-database.ts'

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)
  taskStoreContract(
    name,
    async () => {
      const { db, other } = await emptied()
      return {
        stores: [new SqlTaskStore(db), new SqlTaskStore(other)] as const,
        ledger: new SqlLedger(other),
        claims: new SqlIdempotencyStore(db),
        calls: new SqlCallStore(db),
        close: async () => {},
      }
    },
    skip,
  )
}
