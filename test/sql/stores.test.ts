import { openDatabase, SqlCallStore, SqlKeyDirectory, seedAccountsAndKeys } from '../../lib/sql/index.ts'
import { callStoreContract } from '../contracts/call-store.ts'
import { keyDirectoryContract } from '../contracts/key-directory.ts'
import { temporaryFolder } from './temporary-database.ts'

callStoreContract('SQLite', async () => {
  const { url, remove } = await temporaryFolder()
  const db = await openDatabase(url)
  const close = () => db.destroy().then(remove)
  return { store: new SqlCallStore(db), close }
})

callStoreContract('SQLite, searched through a handle of its own', async () => {
  const { url, remove } = await temporaryFolder()
  const db = await openDatabase(url)
  const searches = await openDatabase(url, { readOnly: true })
  const close = () => Promise.all([db.destroy(), searches.destroy()]).then(remove)
  return { store: new SqlCallStore(db, { searches }), close }
})

keyDirectoryContract('SQLite', async (seed) => {
  const { url, remove } = await temporaryFolder()
  const db = await openDatabase(url)
  await seedAccountsAndKeys(db, seed)
  const close = () => db.destroy().then(remove)
  return { keys: new SqlKeyDirectory(db), close }
})
