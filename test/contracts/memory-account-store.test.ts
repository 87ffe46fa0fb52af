import { MemoryAccountStore } from '../../lib/endpoints/admin/index.ts'
import { MemoryLedger } from '../../lib/ledger/index.ts'
import { accountStoreContract } from './account-store.ts'

accountStoreContract('memory', async () => {
  const ledger = new MemoryLedger()
  const accounts = new MemoryAccountStore({ ledger })
  return { accounts, ledger, changes: async () => accounts.changes, close: async () => {} }
})
