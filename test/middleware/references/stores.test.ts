import { openDatabase, SqlKeptStore } from '../../../lib/stores/sql/index.ts'
import { keptStoreContract } from '../../contracts/kept-store.ts'
import { postgresUrl } from '../../stores/sql/postgres-database.ts'
import { temporaryDatabase } from '../../stores/sql/temporary-database.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'

const openTwice = async (url: string) => {
  const one = await openDatabase(url)
  const other = await openDatabase(url)
  const close = () => Promise.all([one.destroy(), other.destroy()]).then(() => {})
  return { stores: [new SqlKeptStore(one), new SqlKeptStore(other)] as const, close }
}

keptStoreContract('SQLite', async () => {
  const { url, remove } = await temporaryDatabase()
  const { stores, close } = await openTwice(url)
  return { stores, close: () => close().then(remove) }
})

keptStoreContract('Postgres', async () => openTwice(await postgresUrl()), WITHOUT_POSTGRES)
