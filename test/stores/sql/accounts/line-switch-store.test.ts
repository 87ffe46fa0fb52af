import { openDatabase, SqlChangeLog, SqlLineSwitchStore } from '../../../../lib/stores/sql/index.ts'
import { lineSwitchContract } from '../../../contracts/line-switch-store.ts'
import { emptiedDatabase } from '../support/emptied-database.ts'
import { BACKENDS } from '../support/postgres-database.ts'

for (const { name, url, skip } of BACKENDS) {
  const emptied = emptiedDatabase(url)
  lineSwitchContract(
    name,
    async () => {
      const { url: at, db, other } = await emptied()
      const lookUps = await openDatabase(at, { readOnly: true })
      const stores = [new SqlLineSwitchStore(db), new SqlLineSwitchStore(other, { lookUps })] as const
      return { stores, changes: new SqlChangeLog(db), close: () => lookUps.destroy() }
    },
    skip,
  )
}
