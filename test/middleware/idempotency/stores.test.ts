import { MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { RedisIdempotencyStore } from '../../../lib/stores/redis/index.ts'
import { SqlIdempotencyStore } from '../../../lib/stores/sql/index.ts'
import { idempotencyStoreContract } from '../../contracts/idempotency-store.ts'
import { onEachDatabase } from '../../stores/sql/support/on-each-database.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'

idempotencyStoreContract('memory', async () => ({
  stores: [new MemoryIdempotencyStore()],
  close: async () => {},
}))

onEachDatabase(idempotencyStoreContract, ({ db, other }) => ({
  stores: [new SqlIdempotencyStore(db), new SqlIdempotencyStore(other)] as const,
}))

const cleanUp = cleaningUp()
let server: RedisServer | undefined
cleanUp.after(() => server?.close())

const openRedis = async () => {
  server ??= await startRedis()
  const redis = server
  const clients = [redis.client(), redis.client({ enableAutoPipelining: true })] as const
  const [one, other] = clients.map((client) => new RedisIdempotencyStore({ redis: client }))
  const close = async () => {
    for (const client of clients) client.disconnect()
  }
  return { stores: [one!, other!] as const, prunes: false, close }
}

idempotencyStoreContract('Redis', openRedis, WITHOUT_REDIS)
