import { openDatabase, SqlCallStore, SqlLedger, SqlUsageStore } from '../../../lib/stores/sql/index.ts'
import { usageContract } from '../../contracts/usage.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { postgresUrl } from './postgres-database.ts'
import { PATIENT, temporaryDatabase } from './temporary-database.ts'

async function opened(url: string, remove: () => Promise<void>) {
  const handles = [await openDatabase(url, PATIENT), await openDatabase(url, PATIENT)] as const
  const [one, other] = handles
  return {
    ledgers: [new SqlLedger(one), new SqlLedger(other)] as const,
    calls: new SqlCallStore(other),
    usage: new SqlUsageStore(one),
    async close() {
      for (const db of handles) await db.destroy()
      await remove()
    },
  }
}

usageContract('SQLite', async () => {
  const { url, remove } = await temporaryDatabase()
  return opened(url, remove)
})

usageContract('Postgres', async () => opened(await postgresUrl(), async () => {}), WITHOUT_POSTGRES)
