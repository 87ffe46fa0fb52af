import { openDatabase, SqlChangeLog, SqlLineSwitchStore } from '../../../lib/stores/sql/index.ts'
import { lineSwitchContract } from '../../contracts/line-switch-store.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { postgresUrl } from './postgres-database.ts'
import { temporaryDatabase } from './temporary-database.ts'

async function openTwice(url: string) {
  const db = await openDatabase(url)
  const other = await openDatabase(url)
  const lookUps = await openDatabase(url, { readOnly: true })
  return {
    stores: [new SqlLineSwitchStore(db), new SqlLineSwitchStore(other, { lookUps })] as const,
    changes: new SqlChangeLog(db),
    close: async () => void (await Promise.all([db.destroy(), other.destroy(), lookUps.destroy()])),
  }
}

lineSwitchContract('SQLite', async () => {
  const { url, remove } = await temporaryDatabase()
  const opened = await openTwice(url)
  return { ...opened, close: () => opened.close().then(remove) }
})

lineSwitchContract('Postgres', async () => openTwice(await postgresUrl()), WITHOUT_POSTGRES)
