import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { BrokenRecord } from '../../../lib/core/store-guard/index.ts'
import { RedisIdempotencyStore, type RedisIdempotencyStoreOptions } from '../../../lib/stores/redis/index.ts'

const NOW = 1_700_000_000_000
const MINUTE = 60_000

/** A store on a client that notes which scripts are run, and answers as the test has set. */
function opened(t: TestContext, options: { prefix?: string } = {}) {
  t.mock.timers.enable({ apis: ['Date'], now: NOW })
  const run: unknown[][] = []
  const world = { reply: null as unknown, fault: undefined as unknown }
  const redis = {
    defineCommand(name: string) {
      Object.assign(redis, {
        [name]: async (...args: unknown[]) => {
          run.push([name, ...args])
          if (world.fault !== undefined) throw world.fault
          return world.reply
        },
      })
    },
  }
  const store = new RedisIdempotencyStore({
    redis: redis as unknown as RedisIdempotencyStoreOptions['redis'],
    ...options,
  })
  return { run, store, world }
}

const CLAIM = { id: 'id', owner: 'me' }
const KEY = 'gateway:idempotency:id'

describe('a record of an Idempotency-Key on Redis', () => {
  it('lives a minute longer than it is valid, so that its own expiry decides', async (t) => {
    const { run, store, world } = opened(t)
    const asked = { ...CLAIM, fingerprint: 'f', now: NOW - 5000, leaseUntil: NOW + 25_000 }
    assert.equal(await store.claim(asked), undefined)
    world.reply = 1
    assert.equal(await store.complete(CLAIM, NOW + 3_600_000.5), true)
    assert.deepEqual(await store.renew([CLAIM, { ...CLAIM, id: 'other' }], NOW + 10), [true, true])
    await store.release(CLAIM)
    const lease = NOW + 25_000
    assert.deepEqual(run, [
      ['gatewayIdempotencyClaim', 1, KEY, 'me', 'f', NOW - 5000, lease, 30_000 + MINUTE],
      ['gatewayIdempotencyComplete', 1, KEY, 'me', NOW + 3_600_000.5, 3_600_001 + MINUTE],
      ['gatewayIdempotencyRenew', 1, KEY, 'me', NOW + 10, 10 + MINUTE],
      ['gatewayIdempotencyRenew', 1, 'gateway:idempotency:other', 'me', NOW + 10, 10 + MINUTE],
      ['gatewayIdempotencyRelease', 1, KEY, 'me'],
    ])
  })

  it('that is over already lives a minute', async (t) => {
    const { run, store } = opened(t, { prefix: 'p:' })
    await store.complete(CLAIM, NOW - 1_000_000)
    assert.deepEqual(run, [['gatewayIdempotencyComplete', 1, 'p:id', 'me', NOW - 1_000_000, MINUTE]])
  })

  it('is read as it stands, also where the client reads numbers as texts', async (t) => {
    const { store, world } = opened(t)
    const asked = { ...CLAIM, fingerprint: 'f', now: NOW, leaseUntil: NOW + 1 }
    world.reply = ['other', 'g', 'completed', '77']
    assert.deepEqual(await store.claim(asked), {
      owner: 'other',
      fingerprint: 'g',
      state: 'completed',
      expiresAt: 77,
    })
    world.reply = ['other', 'g', 'running', '77']
    assert.equal((await store.claim(asked))?.state, 'running')
    world.reply = '1'
    assert.equal(await store.complete(CLAIM, NOW), true)
    for (const reply of [0, '0']) {
      world.reply = reply
      assert.equal(await store.complete(CLAIM, NOW), false)
      assert.deepEqual(await store.renew([CLAIM], NOW), [false])
    }
  })

  it('is at fault where a script says so of its key, and nothing else is', async (t) => {
    const { store, world } = opened(t)
    for (const message of ['WRONGTYPE of a key', 'ERR user_script:3: x', 'ERR Error running script']) {
      world.fault = new Error(message)
      await assert.rejects(
        store.complete(CLAIM, NOW),
        (error) =>
          error instanceof BrokenRecord && error.message.startsWith(KEY) && error.cause === world.fault,
      )
      assert.deepEqual(await store.renew([CLAIM], NOW), [false])
    }
    for (world.fault of [new Error('READONLY WRONGTYPE of a key'), new Error('ERR unknown'), 'WRONGTYPE ']) {
      await assert.rejects(store.complete(CLAIM, NOW), (error) => error === world.fault)
      await assert.rejects(store.renew([CLAIM], NOW), (error) => error === world.fault)
    }
  })

  it('is removed by Redis, not by the store', async (t) => {
    const { run, store } = opened(t)
    assert.equal(await store.prune(), 0)
    assert.deepEqual(run, [])
    for (const redis of [undefined, null, {}])
      assert.throws(
        () => new RedisIdempotencyStore({ redis } as unknown as RedisIdempotencyStoreOptions),
        TypeError,
      )
  })
})
