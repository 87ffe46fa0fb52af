import { SqlChangeLog, SqlOperatorStore } from '../../../../lib/stores/sql/index.ts'
import { operatorStoreContract } from '../../../contracts/operator-store.ts'
import { onEachDatabase } from '../support/on-each-database.ts'

onEachDatabase(operatorStoreContract, ({ db, other }) => ({
  stores: [new SqlOperatorStore(db), new SqlOperatorStore(other)] as const,
  changes: new SqlChangeLog(db),
}))
