import { openDatabase, SqlCallStore, SqlIdempotencyStore, SqlLedger } from '../../../lib/stores/sql/index.ts'
import { ledgerContract } from '../../contracts/ledger.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { postgresUrl } from './postgres-database.ts'
import { PATIENT, temporaryDatabase } from './temporary-database.ts'

async function openLedgers(url: string, remove: () => Promise<void>) {
  const handles = [await openDatabase(url, PATIENT), await openDatabase(url, PATIENT)] as const
  const [one, other] = handles
  return {
    ledgers: [new SqlLedger(one), new SqlLedger(other)] as const,
    records: { claims: new SqlIdempotencyStore(other), calls: new SqlCallStore(other) },
    async close() {
      for (const db of handles) await db.destroy()
      await remove()
    },
  }
}

ledgerContract('SQLite', async () => {
  const { url, remove } = await temporaryDatabase()
  return openLedgers(url, remove)
})

ledgerContract(
  'Postgres',
  async () => {
    return openLedgers(await postgresUrl(), async () => {})
  },
  WITHOUT_POSTGRES,
)
