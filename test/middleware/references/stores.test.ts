import { SqlResourceStore } from '../../../lib/stores/sql/index.ts'
import { resourceStoreContract } from '../../contracts/resource-store.ts'
import { onEachDatabase } from '../../stores/sql/support/on-each-database.ts'

onEachDatabase(resourceStoreContract, ({ db, other }) => ({
  stores: [new SqlResourceStore(db), new SqlResourceStore(other)] as const,
}))
