import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Redis } from 'ioredis'
import { StoreAway } from '../../../lib/core/store-guard/index.ts'
import type { Limit } from '../../../lib/middleware/rate-limit/index.ts'
import { RedisLimitStore } from '../../../lib/stores/redis/index.ts'
import { demand, limit } from '../../middleware/rate-limit/demands.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { untilAsync } from '../../support/until.ts'

const PREFIX = 'gateway:{limits}:'

/** What may stand in a key instead of what belongs there. */
const STRINGS = [
  '',
  'abc',
  'nan',
  '-nan',
  'inf',
  '1e3',
  '0x10',
  '12.5',
  ' 7',
  '9223372036854775807',
  '9'.repeat(400),
]
const OTHERS: Record<string, (redis: Redis, key: string) => Promise<unknown>> = {
  'a list': (redis, key) => redis.rpush(key, 'x'),
  'a set': (redis, key) => redis.sadd(key, 'x'),
  'a hash': (redis, key) => redis.hset(key, 'x', 'y'),
  'a sorted set': (redis, key) => redis.zadd(key, 1, 'x'),
  'a stream': (redis, key) => redis.xadd(key, '*', 'x', 'y'),
}
for (const text of STRINGS)
  OTHERS[`"${text.slice(0, 20)}"`] = (redis, key) => redis.set(key, text, 'PX', 60_000)

const WAITS: Record<string, Record<string, string>> = {
  'a wait of no numbers': { since: 'x', told: 'y', until: 'z' },
  'a wait that is no number': { since: '1', told: 'nan', until: 'nan' },
  'a wait without its end': { told: '5' },
  'a wait with pardons that are no number': { since: '1', told: '2', until: '3', pardons: 'many' },
}

describe('a key that does not hold what the limits keep there', { skip: WITHOUT_REDIS }, () => {
  let server: RedisServer
  let redis: Redis
  before(async () => {
    server = await startRedis()
    redis = server.client()
    await redis.ping()
  })
  after(() => server.close())

  /** Breaks a key of one subject, and asks for it among others. */
  async function assertOneFails(
    broken: string,
    key: string,
    limits: readonly Limit[],
    sender: string,
  ): Promise<void> {
    const logger = recordingLogger()
    const store = new RedisLimitStore({ redis, logger, timeoutMs: 5000 })
    const mine = [limit('rpm', `${broken}:mine`, 5)]
    const other = ['rpm', 'tpm', 'concurrency'].map((kind) =>
      limit(kind as Limit['kind'], `${broken}:other`, 2),
    )
    store.ended(sender)
    const [first, failed, second, third] = await Promise.allSettled([
      store.admit(demand(other)),
      store.admit(demand([...mine, ...limits], { sender })),
      store.admit(demand(other)),
      store.admit(demand(other)),
    ])
    assert.ok(failed.status === 'rejected' && failed.reason instanceof StoreAway, broken)
    assert.equal(failed.reason.message.split(' does not hold')[0], PREFIX + key, 'it is named')
    assert.deepEqual(
      [first, second, third].map((each) => each.status === 'fulfilled' && each.value.refusedBy?.kind),
      [undefined, undefined, 'rpm'],
      broken,
    )
    await assert.rejects(store.admit(demand(limits, { sender })), StoreAway)
    assert.equal(await redis.get(`${PREFIX}${mine[0]?.key}`), null, 'nothing else was counted of it')
    assert.deepEqual([store.away, store.outages], [false, 0])
    assert.deepEqual(
      logger.lines.map(({ fields }) => fields.key),
      [PREFIX + key],
      'it is told of once',
    )
    await store.ping()
  }

  for (const [what, write] of Object.entries(OTHERS)) {
    it(`${what} fails its own subject, and nobody else`, async () => {
      for (const kind of ['rpm', 'tpm', 'concurrency'] as const) {
        if (kind === 'concurrency' && what === 'a sorted set') continue
        const asked = limit(kind, `${what}:${kind}`, 5)
        await write(redis, PREFIX + asked.key)
        await assertOneFails(`${what} ${kind}`, asked.key, [asked], `${what} ${kind}`)
      }
      if (what === 'a hash') return
      await write(redis, `${PREFIX}wait:${what}`)
      await assertOneFails(`${what} wait`, `wait:${what}`, [limit('rpm', `${what}:waits`, 5)], what)
    })
  }

  for (const [what, fields] of Object.entries(WAITS)) {
    it(`${what} fails its own sender, and nobody else`, async () => {
      await redis.hset(`${PREFIX}wait:${what}`, fields)
      await assertOneFails(what, `wait:${what}`, [limit('rpm', what, 5)], what)
    })
  }

  it('where slots are held fails those who ask for one, and the leases of nobody else', async () => {
    const logger = recordingLogger()
    const store = new RedisLimitStore({ redis, logger, timeoutMs: 5000, leaseMs: 1000 })
    const [broken, whole] = ['broken', 'whole'].map((subject) => limit('concurrency', subject, 2)) as [
      Limit,
      Limit,
    ]
    const held = [demand([broken]), demand([whole])] as const
    for (const each of held) await store.admit(each)
    await redis.del(PREFIX + broken.key)
    await redis.set(PREFIX + broken.key, 'x')
    await redis.del(PREFIX + whole.key)
    await untilAsync(async () => (await redis.zcard(PREFIX + whole.key)) === 1, 'the renewal')
    for (const each of held) await store.release(each)
    assert.equal(await redis.zcard(PREFIX + whole.key), 0)
    assert.deepEqual([store.away, store.outages, await redis.get(PREFIX + broken.key)], [false, 0, 'x'])
  })
})
