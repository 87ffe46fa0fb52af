import { MemoryLedger } from '../../../lib/ledger/index.ts'
import { MemoryCallStore } from '../../../lib/middleware/call-log/index.ts'
import { usageContract } from '../../contracts/usage.ts'

usageContract('memory', async () => {
  const ledger = new MemoryLedger()
  const calls = new MemoryCallStore({ usage: ledger.usage })
  return { ledgers: [ledger], calls, usage: ledger.usage, close: async () => {} }
})
