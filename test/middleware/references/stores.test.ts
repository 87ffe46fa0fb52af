import { openDatabase, SqlResourceStore } from '../../../lib/stores/sql/index.ts'
import { resourceStoreContract } from '../../contracts/resource-store.ts'
import { postgresUrl } from '../../stores/sql/postgres-database.ts'
import { temporaryDatabase } from '../../stores/sql/temporary-database.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'

const openTwice = async (url: string) => {
  const one = await openDatabase(url)
  const other = await openDatabase(url)
  const close = () => Promise.all([one.destroy(), other.destroy()]).then(() => {})
  return { stores: [new SqlResourceStore(one), new SqlResourceStore(other)] as const, close }
}

resourceStoreContract('SQLite', async () => {
  const { url, remove } = await temporaryDatabase()
  const { stores, close } = await openTwice(url)
  return { stores, close: () => close().then(remove) }
})

resourceStoreContract('Postgres', async () => openTwice(await postgresUrl()), WITHOUT_POSTGRES)
