import { MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { RedisIdempotencyStore } from '../../../lib/stores/redis/index.ts'
import { openDatabase, SqlIdempotencyStore } from '../../../lib/stores/sql/index.ts'
import { idempotencyStoreContract } from '../../contracts/idempotency-store.ts'
import { postgresUrl } from '../../stores/sql/postgres-database.ts'
import { temporaryDatabase } from '../../stores/sql/temporary-database.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'

idempotencyStoreContract('memory', async () => ({
  stores: [new MemoryIdempotencyStore()],
  close: async () => {},
}))

idempotencyStoreContract('SQLite', async () => {
  const { url, remove } = await temporaryDatabase()
  const handles = [await openDatabase(url), await openDatabase(url)] as const
  const [one, other] = handles
  const close = () => Promise.all(handles.map((db) => db.destroy())).then(remove)
  return { stores: [new SqlIdempotencyStore(one), new SqlIdempotencyStore(other)], close }
})

const openPostgres = async () => {
  const url = await postgresUrl()
  const handles = [await openDatabase(url), await openDatabase(url)] as const
  const [one, other] = handles
  const close = async () => {
    for (const db of handles) await db.destroy()
  }
  return { stores: [new SqlIdempotencyStore(one), new SqlIdempotencyStore(other)] as const, close }
}

idempotencyStoreContract('Postgres', openPostgres, WITHOUT_POSTGRES)

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
