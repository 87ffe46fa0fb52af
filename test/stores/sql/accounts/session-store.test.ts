import { SqlChangeLog, SqlSessionStore } from '../../../../lib/stores/sql/index.ts'
import { sessionStoreContract } from '../../../contracts/session-store.ts'
import { onEachDatabase } from '../support/on-each-database.ts'

onEachDatabase(sessionStoreContract, ({ db, other }) => ({
  stores: [new SqlSessionStore(db), new SqlSessionStore(other)] as const,
  changes: new SqlChangeLog(db),
}))
