import type { TestContext } from 'node:test'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import { untilAsync } from '../../support/until.ts'

/** A master with a replica, and the sentinel that watches them as `limits` and knows both. */
export interface WatchedRedis {
  readonly master: RedisServer
  readonly replica: RedisServer
  readonly sentinel: RedisServer
  readonly url: string
}

export async function watchedRedis(t: TestContext): Promise<WatchedRedis> {
  const master = await startRedis()
  t.after(() => master.close())
  const replica = await startRedis({ settings: ['--replicaof', `127.0.0.1 ${master.port}`] })
  t.after(() => replica.close())
  const sentinel = await startRedis({ sentinelOf: { name: 'limits', port: master.port } })
  t.after(() => sentinel.close())
  const watch = sentinel.client()
  await untilAsync(async () =>
    `${await watch.call('SENTINEL', 'REPLICAS', 'limits')}`.includes(`${replica.port}`),
  )
  return { master, replica, sentinel, url: `redis+sentinel://127.0.0.1:${sentinel.port}/limits` }
}
