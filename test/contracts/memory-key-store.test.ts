import { MemoryAccountStore, MemoryKeyStore } from '../../lib/admin/index.ts'
import { MemoryKeyDirectory } from '../../lib/authenticate/index.ts'
import { MemoryLedger } from '../../lib/billing-guard/index.ts'
import { MemoryChangeLog } from '../../lib/change-log/index.ts'
import { keyStoreContract } from './key-store.ts'

keyStoreContract('memory', async () => {
  const ledger = new MemoryLedger()
  const directory = new MemoryKeyDirectory()
  const changes = new MemoryChangeLog()
  const accounts = new MemoryAccountStore({ ledger, keys: directory, changes })
  const keys = new MemoryKeyStore({ ledger, directory, accounts, changes })
  return { keys, accounts, directory, ledger, changes, close: async () => {} }
})
