import { openDatabase, SqlChangeLog, SqlOperatorStore } from '../../../lib/stores/sql/index.ts'
import { operatorStoreContract } from '../../contracts/operator-store.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { postgresUrl } from './postgres-database.ts'
import { temporaryDatabase } from './temporary-database.ts'

async function openTwice(url: string) {
  const db = await openDatabase(url)
  const other = await openDatabase(url)
  return {
    stores: [new SqlOperatorStore(db), new SqlOperatorStore(other)] as const,
    changes: new SqlChangeLog(db),
    close: async () => void (await Promise.all([db.destroy(), other.destroy()])),
  }
}

operatorStoreContract('SQLite', async () => {
  const { url, remove } = await temporaryDatabase()
  const opened = await openTwice(url)
  return { ...opened, close: () => opened.close().then(remove) }
})

operatorStoreContract('Postgres', async () => openTwice(await postgresUrl()), WITHOUT_POSTGRES)
