import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Redis } from 'ioredis'
import { RedisIdempotencyStore } from '../../../lib/stores/redis/index.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'

const NOW = Date.now()

describe('a record of an Idempotency-Key in Redis', { skip: WITHOUT_REDIS }, () => {
  let server: RedisServer
  let redis: Redis
  let store: RedisIdempotencyStore
  let ids = 0
  const cleanUp = cleaningUp()
  before(async () => {
    server = await startRedis()
    cleanUp.after(() => server.close())
    redis = server.client()
    store = new RedisIdempotencyStore({ redis })
  })

  /** Writes a record; times are milliseconds from now. */
  async function stands(fields: Record<string, string>, expires = 1000): Promise<string> {
    const id = `id-${++ids}`
    await redis.hset(`gateway:idempotency:${id}`, { ...fields, expires: `${NOW + expires}` })
    return id
  }
  const record = async (id: string) => {
    const { expires, ...fields } = await redis.hgetall(`gateway:idempotency:${id}`)
    return expires === undefined ? fields : { ...fields, expires: Number(expires) - NOW }
  }
  const claim = (id: string, owner = 'me') =>
    store.claim({ id, owner, fingerprint: 'new', now: NOW, leaseUntil: NOW + 5000 })
  const CLAIMED = { owner: 'me', fingerprint: 'new', state: 'running', expires: 5000 }
  const RUNNING = { owner: 'other', fingerprint: 'f', state: 'running' }
  const COMPLETED = { owner: 'me', fingerprint: 'f', state: 'completed', answer: 'a' }

  it('is given to another with the millisecond in which it expires, and not before', async () => {
    for (const fields of [RUNNING, COMPLETED]) {
      const [kept, over] = [await stands(fields, 1), await stands(fields, 0)]
      const found = await claim(kept)
      assert.deepEqual(found, { ...fields, expiresAt: NOW + 1 })
      assert.deepEqual(await record(kept), { ...fields, expires: 1 })
      assert.equal(await claim(over), undefined)
      assert.deepEqual(await record(over), CLAIMED)
    }
  })

  it('can be claimed again by its owner while it runs, and by none once it is completed', async () => {
    const [own, done] = [await stands({ ...RUNNING, owner: 'me' }), await stands(COMPLETED)]
    assert.equal(await claim(own), undefined)
    assert.deepEqual(await record(own), CLAIMED)
    assert.equal((await claim(done))?.state, 'completed')
  })

  it('without a fingerprint is one of another content', async () => {
    const id = await stands({ owner: 'other', state: 'running' })
    assert.equal((await claim(id))?.fingerprint, '')
  })

  for (const [what, fields, isOwn] of [
    ['runs', { ...RUNNING, owner: 'me' }, true],
    ['another has', RUNNING, false],
    ['is completed', COMPLETED, false],
  ] as const)
    it(`that ${what} is ${isOwn ? '' : 'not '}renewed and released`, async () => {
      const id = await stands(fields)
      assert.deepEqual(await store.renew([{ id, owner: 'me' }], NOW + 9000), [isOwn])
      assert.deepEqual(await record(id), { ...fields, expires: isOwn ? 9000 : 1000 })
      await store.release({ id, owner: 'me' })
      assert.deepEqual(await record(id), isOwn ? {} : { ...fields, expires: 1000 })
    })

  it('is completed by its owner, with an answer or without, also a second time', async () => {
    const [own, other] = [await stands({ ...RUNNING, owner: 'me' }), await stands(RUNNING)]
    const completed = { owner: 'me', fingerprint: 'f', state: 'completed', expires: 9000 }
    assert.equal(await store.complete({ id: own, owner: 'me' }, NOW + 9000), true)
    assert.deepEqual(await record(own), completed)
    assert.equal(await store.complete({ id: own, owner: 'me' }, NOW + 9000, ''), true)
    assert.deepEqual(await record(own), { ...completed, answer: '' })
    assert.equal(await store.complete({ id: other, owner: 'me' }, NOW + 9000, 'a'), false)
    assert.deepEqual(await record(other), { ...RUNNING, expires: 1000 })
    assert.equal(await store.complete({ id: 'none', owner: 'me' }, NOW + 9000, 'a'), false)
    assert.deepEqual(await record('none'), {})
  })
})
