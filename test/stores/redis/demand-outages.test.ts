import assert from 'node:assert/strict'
import { it, type TestContext } from 'node:test'
import type { Command } from 'ioredis'
import { StoreAway } from '../../../lib/core/store-guard/index.ts'
import { RedisLimitStore, type RedisLimitStoreOptions } from '../../../lib/stores/redis/index.ts'
import { demand, limit } from '../../middleware/rate-limit/demands.ts'
import { recordingLogger } from '../../support/app-server.ts'

/** A store on a client that admits every demand of one counter, or fails, and a clock of the test's. */
function opened(t: TestContext) {
  const world = { fails: false, now: 1000, sent: 0, verdict: '[0,0,1,60000]' }
  t.mock.method(performance, 'now', () => world.now)
  const redis = {
    options: {},
    async sendCommand(_: Command) {
      world.sent++
      if (world.fails) throw new Error('READONLY')
      return [1, world.verdict]
    },
  } as unknown as RedisLimitStoreOptions['redis']
  const changes: boolean[] = []
  const onChange = (away: boolean) => void changes.push(away)
  const logger = recordingLogger()
  const store = new RedisLimitStore({ redis, logger, onChange })
  const ask = () => store.admit(demand([limit('rpm', 's', 5)]))
  return { world, store, ask, changes, logger }
}

it('a demand that fails begins an outage, and the next one whose turn it is ends it', async (t) => {
  const { world, store, ask, changes } = opened(t)
  assert.equal((await ask()).refusedBy, undefined)
  world.fails = true
  await assert.rejects(ask(), StoreAway)
  assert.deepEqual([store.away, store.outages, world.sent], [true, 1, 2])
  world.now += 499
  await assert.rejects(ask(), StoreAway)
  assert.equal(world.sent, 2, 'nobody asks before half a second is over')
  world.now += 1
  await assert.rejects(ask(), StoreAway)
  assert.equal(world.sent, 3)
  world.fails = false
  await assert.rejects(ask(), StoreAway)
  assert.equal(world.sent, 3)
  world.now += 500
  assert.equal((await ask()).refusedBy, undefined)
  assert.deepEqual([store.away, store.outages, changes], [false, 1, [true, false]])
})

it('a call that ended begins no outage by itself, and a slot that comes back does', async (t) => {
  const { world, store, changes } = opened(t)
  world.fails = true
  store.ended('sender')
  await store.close()
  assert.deepEqual([world.sent, store.away], [1, false])
  const held = demand([limit('concurrency', 's', 5)])
  world.fails = false
  await store.admit(held)
  world.fails = true
  await store.release(held)
  assert.deepEqual([store.away, store.outages, changes], [true, 1, [true]])
})

it('a key that is broken is told of once in a minute, however many ask for it', async (t) => {
  const { world, store, ask, logger } = opened(t)
  world.verdict = '[-1,1,0,60000]'
  const told = async () => {
    for (let i = 0; i < 3; i++) await assert.rejects(ask(), StoreAway)
    return logger.lines.map(({ fields }) => fields.key)
  }
  const key = 'gateway:{limits}:rpm:key:s'
  assert.deepEqual(await told(), [key])
  world.now += 59_999
  assert.deepEqual(await told(), [key])
  world.now += 1
  assert.deepEqual(await told(), [key, key])
  assert.equal(store.away, false)
})
