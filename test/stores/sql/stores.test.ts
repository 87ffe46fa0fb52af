import {
  openDatabase,
  SqlCallStore,
  SqlKeyDirectory,
  seedAccountsAndKeys,
} from '../../../lib/stores/sql/index.ts'
import { callStoreContract } from '../../contracts/call-store.ts'
import { keyDirectoryContract } from '../../contracts/key-directory.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { postgresUrl } from './postgres-database.ts'
import { temporaryDatabase } from './temporary-database.ts'

callStoreContract('SQLite', async () => {
  const { url, remove } = await temporaryDatabase()
  const db = await openDatabase(url)
  const close = () => db.destroy().then(remove)
  return { store: new SqlCallStore(db), close }
})

callStoreContract('SQLite, searched through a handle of its own', async () => {
  const { url, remove } = await temporaryDatabase()
  const db = await openDatabase(url)
  const searches = await openDatabase(url, { readOnly: true })
  const close = () => Promise.all([db.destroy(), searches.destroy()]).then(remove)
  return { store: new SqlCallStore(db, { searches }), close }
})

keyDirectoryContract('SQLite', async (seed) => {
  const { url, remove } = await temporaryDatabase()
  const db = await openDatabase(url)
  await seedAccountsAndKeys(db, seed)
  const close = () => db.destroy().then(remove)
  return { keys: new SqlKeyDirectory(db), close }
})

callStoreContract(
  'Postgres',
  async () => {
    const db = await openDatabase(await postgresUrl())
    return { store: new SqlCallStore(db), close: () => db.destroy() }
  },
  WITHOUT_POSTGRES,
)

callStoreContract(
  'Postgres, searched through a handle of its own',
  async () => {
    const url = await postgresUrl()
    const db = await openDatabase(url)
    const searches = await openDatabase(url, { readOnly: true })
    const close = () => Promise.all([db.destroy(), searches.destroy()]).then(() => {})
    return { store: new SqlCallStore(db, { searches }), close }
  },
  WITHOUT_POSTGRES,
)

keyDirectoryContract(
  'Postgres',
  async (seed) => {
    const db = await openDatabase(await postgresUrl())
    await seedAccountsAndKeys(db, seed)
    return { keys: new SqlKeyDirectory(db), close: () => db.destroy() }
  },
  WITHOUT_POSTGRES,
)
