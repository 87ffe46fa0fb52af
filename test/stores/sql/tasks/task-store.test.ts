import {
  SqlCallStore,
  SqlIdempotencyStore,
  SqlLedger,
  SqlTaskStore,
} from '../../../../lib/stores/sql/index.ts'
import { taskStoreContract } from '../../../contracts/task-store.ts'
import { onEachDatabase } from '../support/on-each-database.ts'

onEachDatabase(taskStoreContract, ({ db, other }) => ({
  stores: [new SqlTaskStore(db), new SqlTaskStore(other)] as const,
  ledger: new SqlLedger(other),
  claims: new SqlIdempotencyStore(db),
  calls: new SqlCallStore(db),
}))
