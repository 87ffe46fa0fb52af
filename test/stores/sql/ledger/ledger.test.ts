import { SqlCallStore, SqlIdempotencyStore, SqlLedger } from '../../../../lib/stores/sql/index.ts'
import { ledgerContract } from '../../../contracts/ledger.ts'
import { onEachDatabase } from '../support/on-each-database.ts'

onEachDatabase(ledgerContract, ({ db, other }) => ({
  ledgers: [new SqlLedger(db), new SqlLedger(other)] as const,
  records: { claims: new SqlIdempotencyStore(other), calls: new SqlCallStore(other) },
}))
