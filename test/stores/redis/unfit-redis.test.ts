import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { StoreAway } from '../../../lib/core/store-guard/index.ts'
import { RedisLimitStore } from '../../../lib/stores/redis/index.ts'
import { demand, limit } from '../../middleware/rate-limit/demands.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { untilAsync } from '../../support/until.ts'

interface Fault {
  begin(admin: Redis): Promise<unknown>
  end(admin: Redis): Promise<unknown>
  /** The reason that the store reports. */
  reason: RegExp
}

/** A user of Redis that may do all but one thing. */
const without = (command: string): Fault => ({
  begin: (admin) => admin.call('ACL', 'SETUSER', 'default', `-${command}`),
  end: (admin) => admin.call('ACL', 'SETUSER', 'default', `+${command}`),
  reason: /NOPERM|can't run this command|ACL/i,
})

/** The faults that keep a Redis that answers PING from deciding on demands. */
const FAULTS: Record<string, Fault> = {
  'is full': {
    begin: (admin) => admin.config('SET', 'maxmemory', '1'),
    end: (admin) => admin.config('SET', 'maxmemory', '0'),
    reason: /OOM/,
  },
  'has become a replica': {
    begin: (admin) => admin.call('REPLICAOF', '127.0.0.1', '1'),
    end: (admin) => admin.call('REPLICAOF', 'NO', 'ONE'),
    reason: /READONLY/,
  },
  'has lost the replicas that it must write to': {
    begin: (admin) => admin.config('SET', 'min-replicas-to-write', '1'),
    end: (admin) => admin.config('SET', 'min-replicas-to-write', '0'),
    reason: /NOREPLICAS/,
  },
  'forbids scripts': without('@scripting'),
  'forbids its keys': {
    begin: (admin) => admin.call('ACL', 'SETUSER', 'default', 'resetkeys', '~other'),
    end: (admin) => admin.call('ACL', 'SETUSER', 'default', '~*'),
    reason: /NOPERM/,
  },
}

describe('a Redis that answers PING', { skip: WITHOUT_REDIS, concurrency: 4 }, () => {
  for (const [what, { begin, end, reason }] of Object.entries(FAULTS)) {
    it(`and ${what} is away, once, until that has ended`, async (t) => {
      const server = await startRedis()
      t.after(() => server.close())
      const admin = new Redis(server.port, '127.0.0.1')
      t.after(() => admin.disconnect())
      await admin.call('ACL', 'SETUSER', 'admin', 'on', 'nopass', '~*', '&*', '+@all')
      await admin.call('AUTH', 'admin', 'any')
      const redis = server.client()
      const logger = recordingLogger()
      const store = new RedisLimitStore({ redis, logger, timeoutMs: 5000 })
      const all = (subject: string) => [limit('rpm', subject, 1), limit('concurrency', subject, 100)]
      await store.ping()
      await sleep(5)
      assert.deepEqual(await redis.keys('*'), [], 'nothing is left of it')
      const held = Array.from({ length: 20 }, (_, i) => demand([limit('concurrency', `held${i}`, 100)]))
      for (const each of held) await store.admit(each)
      await store.admit(demand(all('s'), { sender: 's' }))

      await begin(admin)
      await assert.rejects(store.ping(), StoreAway)
      // The commands that Redis still accepts meanwhile do not make it seem back.
      for (const each of held) {
        await store.release(each)
        await assert.rejects(store.ping(), StoreAway)
        await assert.rejects(async () => store.admit(demand([limit('concurrency', 'held0', 1)])), StoreAway)
        await assert.rejects(async () => store.admit(demand(all('s'), { sender: 's' })), StoreAway)
        await sleep(75)
      }
      assert.deepEqual([store.away, store.outages], [true, 1])
      assert.match(
        String((logger.lines[0]?.fields.err as Error | undefined)?.cause ?? logger.lines[0]?.fields.err),
        reason,
      )
      await end(admin)
      await sleep(550)
      await store.ping()
      assert.deepEqual([store.away, store.outages], [false, 1])
      assert.deepEqual(
        logger.lines.map(({ message }) => message),
        ['store is away', 'store is back'],
      )
      assert.equal((await store.admit(demand(all('u')))).refusedBy, undefined)
    })
  }

  it('and refuses writes while all slots are taken has them back soon after that has ended', async (t) => {
    const server = await startRedis()
    t.after(() => server.close())
    const admin = server.client()
    const store = new RedisLimitStore({
      redis: server.client(),
      logger: recordingLogger(),
      timeoutMs: 5000,
      slotLeaseMs: 30_000,
    })
    t.after(() => store.close())
    const slots = () => demand([limit('concurrency', 'busy', 2)])
    const held = [slots(), slots()]
    for (const each of held) await store.admit(each)
    const { begin, end } = FAULTS['has lost the replicas that it must write to'] as Fault
    await begin(admin)
    // To say so it needs no write, so that no outage begins.
    assert.ok((await store.admit(slots())).refusedBy)
    for (const each of held) await store.release(each)
    assert.ok((await store.admit(slots())).refusedBy)
    await end(admin)
    const ended = performance.now()
    await untilAsync(async () => !(await store.admit(slots())).refusedBy, 'a free slot')
    assert.equal(store.outages, 0)
    assert.ok(performance.now() - ended < 6000, 'before the next renewal')
  })

  it('and has forgotten its scripts is asked with them again', async (t) => {
    const server = await startRedis()
    t.after(() => server.close())
    const redis = server.client()
    const store = new RedisLimitStore({ redis, logger: recordingLogger(), timeoutMs: 5000 })
    for (let i = 0; i < 3; i++) {
      assert.equal((await store.admit(demand([limit('rpm', 's', 5)]))).counts[0]?.used, i + 1)
      await redis.script('FLUSH')
    }
    await store.ping()
    assert.equal(store.outages, 0)
  })
})
