import { RedisLineStateStore } from '../../lib/stores/redis/index.ts'
import { MemoryLineStateStore } from '../support/memory-line-state-store.ts'
import { startRedis, WITHOUT_REDIS } from '../support/redis-server.ts'
import { lineStateContract } from './line-state-store.ts'

lineStateContract('memory', async () => {
  const store = new MemoryLineStateStore()
  return { stores: [store, new MemoryLineStateStore(store)], close: async () => {} }
})

lineStateContract(
  'Redis',
  async () => {
    const server = await startRedis()
    const stores = [1, 2].map(() => new RedisLineStateStore({ redis: server.client() }))
    return {
      stores: stores as [RedisLineStateStore, RedisLineStateStore],
      close: () => server.close(),
    }
  },
  WITHOUT_REDIS,
)
