import { mock } from 'node:test'
import { MemoryLimitStore } from '../../lib/middleware/rate-limit/index.ts'
import { limitCounterContract } from './limit-counter.ts'
import { limitWaitContract } from './limit-wait.ts'
import { slotStoreContract } from './slot-store.ts'

const open = async () => {
  mock.timers.enable({ apis: ['Date', 'setTimeout'], now: Date.now() })
  return {
    store: new MemoryLimitStore(),
    advance: (ms: number) => mock.timers.tick(ms),
    close: () => mock.timers.reset(),
  }
}

limitCounterContract('memory', open)
limitWaitContract('memory', open)
slotStoreContract('memory', open)
