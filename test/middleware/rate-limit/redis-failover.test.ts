import assert from 'node:assert/strict'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { Redis } from 'ioredis'
import { openLimitStores } from '../../../examples/gateway/stores/limit-stores.ts'
import { StoreAway } from '../../../lib/core/store-guard/index.ts'
import { RedisLimitStore } from '../../../lib/stores/redis/index.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { untilAsync } from '../../support/until.ts'
import { demand, limit } from './demands.ts'
import { limitedApp } from './limited-app.ts'

const silent = { info() {}, warn() {}, error() {} }
const SLOTS = 'gateway:limits:concurrency:key:s'

/** The same client, of which one script waits while `wait` is set, as those wait that a cluster is asked for again. */
function waiting(redis: Redis, script: string, held: { wait: Promise<void> | undefined }): Redis {
  return new Proxy(redis, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      if (name !== script) return value.bind(target)
      return async (...args: unknown[]) => {
        await held.wait
        return value.apply(target, args)
      }
    },
  })
}

describe('limits on a Redis that is replaced', { skip: WITHOUT_REDIS }, () => {
  let server: RedisServer
  let redis: Redis
  const cleanUp = cleaningUp(afterEach)
  beforeEach(async () => {
    server = await startRedis()
    cleanUp.after(() => server.close())
    redis = server.client()
    await redis.ping()
  })

  it('takes a Redis that has become a replica for one that is away, whatever it answers to PING', async (t) => {
    const store = new RedisLimitStore({ redis, logger: silent, timeoutMs: 2000 })
    await store.ping()
    const successor = await startRedis()
    t.after(() => successor.close())
    await redis.call('REPLICAOF', '127.0.0.1', `${successor.port}`)
    await assert.rejects(store.admit(demand([limit('rpm', 's', 5)])), StoreAway)
    await untilNextTry()
    await assert.rejects(store.ping(), /READONLY|failed/)
    assert.ok(store.away)
    assert.equal(store.outages, 1)
    await redis.call('REPLICAOF', 'NO', 'ONE')
    await untilNextTry()
    await store.ping()
    assert.equal(store.away, false)
    await untilAsync(async () => (await redis.dbsize()) === 0, 'nothing is left of the ping')
  })

  it('is found again by the assembled gateway behind an address that moved, though the old one keeps connections', async (t) => {
    const successor = await startRedis()
    let port = server.port
    const sockets: Socket[] = []
    const address = createServer((socket) => {
      const peer = connect(port, '127.0.0.1')
      sockets.push(socket, peer)
      for (const each of [socket, peer]) each.on('error', () => {})
      socket.pipe(peer).pipe(socket)
    })
    await new Promise<void>((resolve) => address.listen(0, '127.0.0.1', resolve))
    const stores = await openLimitStores(
      `redis://127.0.0.1:${(address.address() as AddressInfo).port}`,
      silent,
    )
    t.after(async () => {
      await stores.close()
      address.close()
      for (const socket of sockets) socket.destroy()
      await successor.close()
    })
    await stores.limits.admit(demand([limit('rpm', 's', 5)]))
    await redis.call('REPLICAOF', '127.0.0.1', `${successor.port}`)
    port = successor.port
    // Refused as a write to a replica, unless the client has connected to the successor already.
    await Promise.resolve(stores.limits.admit(demand([limit('rpm', 's', 5)]))).catch((error: unknown) =>
      assert.ok(error instanceof StoreAway),
    )
    await untilAsync(() =>
      stores.ping().then(
        () => true,
        () => false,
      ),
    )
    await stores.limits.admit(demand([limit('rpm', 'new', 5)]))
    assert.equal(await successor.client().get('gateway:limits:rpm:key:new'), '1')
  })

  it('admits nothing beyond a limit while an answer is late and others come', async (t) => {
    const held: { wait: Promise<void> | undefined } = { wait: undefined }
    const go = Promise.withResolvers<void>()
    const store = new RedisLimitStore({ redis: waiting(redis, 'rlflxIncr', held), logger: silent })
    const app = await limitedApp(t, { store, keyRpm: 1 })
    assert.equal((await app.ask()).status, 200)
    held.wait = go.promise
    const beyond = app.ask()
    const until = performance.now() + 700
    while (performance.now() < until) {
      await store.ping()
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    go.resolve()
    assert.equal((await beyond).status, 429)
    assert.equal(store.outages, 0)
  })

  for (const [script, runs] of [
    ['gatewayTakeSlots', false],
    ['gatewayTakeSlots', true],
    ['rlflxIncr', false],
    ['rlflxIncr', true],
  ] as const) {
    const call = runs ? 'a call that has run meanwhile' : 'a refused call'
    it(`gives back what ${script} takes for ${call} behind its return`, async () => {
      const held: { wait: Promise<void> | undefined } = { wait: undefined }
      const go = Promise.withResolvers<void>()
      const store = new RedisLimitStore({
        redis: waiting(redis, script, held),
        logger: silent,
        timeoutMs: 500,
      })
      const late = demand([limit('concurrency', 's', 5), limit('rpm', 's', 5)])
      held.wait = go.promise
      const asked = store.admit(late)
      await assert.rejects(asked, StoreAway)
      held.wait = undefined
      if (runs) store.hold(late)
      store.release(late)
      await untilNextTry()
      await store.ping()
      await store.admit(demand([limit('rpm', 'other', 5)]))
      go.resolve()
      await untilAsync(async () => (await redis.get('gateway:limits:rpm:key:s')) !== null)
      await untilAsync(async () => (await redis.zcard(SLOTS)) === 0, 'the slot')
      // A call that ran is counted; a call that was refused is not.
      await untilAsync(async () => (await redis.get('gateway:limits:rpm:key:s')) === (runs ? '1' : '0'))
    })
  }
})

/** While a store is away one operation in half a second tries it. */
function untilNextTry(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 550))
}
