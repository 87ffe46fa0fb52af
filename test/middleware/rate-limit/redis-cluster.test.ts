import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Cluster } from 'ioredis'
import { RedisLimitStore } from '../../../lib/stores/redis/index.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { untilAsync } from '../../support/until.ts'
import { demand, limit } from './demands.ts'

for (const enableAutoPipelining of [false, true]) {
  const name = enableAutoPipelining ? 'with' : 'without'
  it(`a client of a cluster, ${name} auto-pipelining, is asked as one of a server is`, {
    skip: WITHOUT_REDIS,
  }, async (t) => {
    const server = await startRedis({
      settings: ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'],
    })
    const node = server.client()
    await node.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
    await untilAsync(async () => `${await node.call('CLUSTER', 'INFO')}`.includes('cluster_state:ok'))
    const cluster = new Cluster([{ host: '127.0.0.1', port: server.port }], { enableAutoPipelining })
    t.after(async () => {
      cluster.disconnect()
      await server.close()
    })
    const store = new RedisLimitStore({ redis: cluster, timeoutMs: 5000 })
    const limits = ['a', 'b', 'c'].flatMap((subject) => [
      limit('rpm', subject, 4),
      limit('tpm', subject, 1000, 10),
      limit('concurrency', subject, 3),
    ])
    const demands = Array.from({ length: 5 }, () => demand(limits))
    const verdicts = await Promise.all(demands.map((each) => store.admit(each)))
    assert.deepEqual(
      verdicts.map(({ refusedBy }) => refusedBy?.kind),
      [undefined, undefined, undefined, 'concurrency', 'rpm'],
    )
    for (const each of demands.slice(0, 3)) store.release(each)
    assert.equal((await store.admit(demand(limits))).refusedBy, undefined)
    assert.equal((await store.admit(demand(limits))).refusedBy?.kind, 'rpm')
    assert.equal(await node.get('gateway:limits:tpm:key:b'), '40')
    assert.equal(await node.zcard('gateway:limits:concurrency:key:c'), 1)
  })
}

it('no hash tag puts the limits of a cluster on one node', { skip: WITHOUT_REDIS }, async (t) => {
  const server = await startRedis()
  t.after(() => server.close())
  const redis = server.client()
  const store = new RedisLimitStore({ redis, timeoutMs: 5000 })
  await store.admit(
    demand(['a', 'b', 'c'].flatMap((each) => [limit('rpm', each, 4), limit('concurrency', each, 3)])),
  )
  const keys = await redis.keys('*')
  assert.equal(keys.length, 6)
  for (const key of keys) assert.doesNotMatch(key, /[{}]/)
})
