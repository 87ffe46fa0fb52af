import { SqlCallStore, SqlIdempotencyStore, SqlLedger } from '../../../lib/stores/sql/index.ts'
import { ledgerContract } from '../../contracts/ledger.ts'
import { emptiedDatabase } from './emptied-database.ts'
import { BACKENDS } from './postgres-database.ts'

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)
  ledgerContract(
    name,
    async () => {
      const { db, other } = await emptied()
      return {
        ledgers: [new SqlLedger(db), new SqlLedger(other)] as const,
        records: { claims: new SqlIdempotencyStore(other), calls: new SqlCallStore(other) },
        close: async () => {},
      }
    },
    skip,
  )
}
