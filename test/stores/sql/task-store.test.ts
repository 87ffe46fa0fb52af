import {
  openDatabase,
  SqlCallStore,
  SqlIdempotencyStore,
  SqlLedger,
  SqlTaskStore,
} from '../../../lib/stores/sql/index.ts'
import { taskStoreContract } from '../../contracts/task-store.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { postgresUrl } from './postgres-database.ts'
import { temporaryDatabase } from './temporary-database.ts'

async function openStores(url: string, remove: () => Promise<void>) {
  const handles = [await openDatabase(url), await openDatabase(url)] as const
  const [one, other] = handles
  return {
    stores: [new SqlTaskStore(one), new SqlTaskStore(other)] as const,
    ledger: new SqlLedger(other),
    claims: new SqlIdempotencyStore(one),
    calls: new SqlCallStore(one),
    async close() {
      for (const db of handles) await db.destroy()
      await remove()
    },
  }
}

taskStoreContract('SQLite', async () => {
  const { url, remove } = await temporaryDatabase()
  return openStores(url, remove)
})

taskStoreContract('Postgres', async () => openStores(await postgresUrl(), async () => {}), WITHOUT_POSTGRES)
