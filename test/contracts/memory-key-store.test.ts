import { MemoryChangeLog } from '../../lib/core/change-log/index.ts'
import { MemoryAccountStore, MemoryKeyStore } from '../../lib/endpoints/admin/index.ts'
import { MemoryLedger } from '../../lib/ledger/index.ts'
import { MemoryKeyDirectory } from '../../lib/middleware/authenticate/index.ts'
import { keyStoreContract } from './key-store.ts'

keyStoreContract('memory', async () => {
  const ledger = new MemoryLedger()
  const directory = new MemoryKeyDirectory()
  const changes = new MemoryChangeLog()
  const accounts = new MemoryAccountStore({ ledger, keys: directory, changes })
  const keys = new MemoryKeyStore({ ledger, directory, accounts, changes })
  return { keys, accounts, directory, ledger, changes, close: async () => {} }
})
