import { Redis } from 'ioredis'
import type { IdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { RedisIdempotencyStore } from '../../../lib/stores/redis/index.ts'
import { openDatabase, SqlIdempotencyStore } from '../../../lib/stores/sql/index.ts'
import { startKeyedGateway } from '../../middleware/idempotency/keyed-gateway.ts'

/* A gateway in a process of its own: says its URL, and serves until it is killed. */

const [storeUrl, leaseMs, ...lines] = process.argv.slice(2) as [string, string, ...string[]]

async function storeOf(url: string): Promise<IdempotencyStore> {
  if (url.startsWith('redis:')) return new RedisIdempotencyStore({ redis: new Redis(url) })
  return new SqlIdempotencyStore(await openDatabase(url))
}

const gateway = await startKeyedGateway({
  lines,
  idempotency: {
    store: await storeOf(storeUrl),
    leaseMs: Number(leaseMs),
    // A machine that is busy with other things is not an outage.
    storeTimeoutMs: 5000,
  },
})
process.stdout.write(`${gateway.url}\n`)
