import { SqlCallStore, SqlLedger, SqlUsageStore } from '../../../lib/stores/sql/index.ts'
import { usageContract } from '../../contracts/usage.ts'
import { emptiedDatabase } from './emptied-database.ts'
import { BACKENDS } from './postgres-database.ts'

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)
  usageContract(
    name,
    async () => {
      const { db, other } = await emptied()
      return {
        ledgers: [new SqlLedger(db), new SqlLedger(other)] as const,
        calls: new SqlCallStore(other),
        usage: new SqlUsageStore(db),
        close: async () => {},
      }
    },
    skip,
  )
}
