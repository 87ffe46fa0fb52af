import { SqlCallStore, SqlLedger, SqlUsageStore } from '../../../../lib/stores/sql/index.ts'
import { usageContract } from '../../../contracts/usage.ts'
import { onEachDatabase } from '../support/on-each-database.ts'

onEachDatabase(usageContract, ({ db, other }) => ({
  ledgers: [new SqlLedger(db), new SqlLedger(other)] as const,
  calls: new SqlCallStore(other),
  usage: new SqlUsageStore(db),
}))
