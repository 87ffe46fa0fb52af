import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Redis } from 'ioredis'
import { REFUND } from '../../../lib/stores/redis/limit-scripts.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'

const NOW = 1_800_000_000_000

describe('giving a charge back in Redis', { skip: WITHOUT_REDIS }, () => {
  let server: RedisServer
  let redis: Redis
  const cleanUp = cleaningUp()
  before(async () => {
    server = await startRedis()
    cleanUp.after(() => server.close())
    redis = server.client()
  })

  /** A counter of 10 whose window has `left` to go; what it says after 4 of a window with that end were given back. */
  async function refunded(left: number, windowEnd: number, used = 10): Promise<string | null> {
    const replies = await redis
      .multi()
      .set('counter', used, 'PX', left)
      .eval(REFUND, 1, 'counter', NOW, 4, windowEnd)
      .get('counter')
      .exec()
    // The script's clock is stopped, and Redis's as good as that within a transaction.
    return replies?.[2]?.[1] as string | null
  }

  it('lowers the count in the window that was charged', async () => {
    assert.equal(await refunded(30_000, NOW + 30_000), '6')
  })

  it('leaves another window alone', async () => {
    assert.equal(await refunded(30_000, NOW + 29_000), '10')
    assert.equal(await refunded(30_000, NOW - 30_000), '10')
  })

  it('leaves the last 300 ms of a window alone', async () => {
    assert.equal(await refunded(290, NOW + 290), '10')
    assert.equal(await refunded(300, NOW + 300), '10')
  })

  it('takes a window for the same if its end is 5 ms away, and no further', async () => {
    // The way through Redis makes the window of the counter shorter, never longer.
    for (const away of [-5, -4]) assert.equal(await refunded(30_000, NOW + 30_000 + away), '6')
    for (const away of [6, 9]) assert.equal(await refunded(30_000, NOW + 30_000 + away), '10')
  })

  it('takes all of a count', async () => {
    assert.equal(await refunded(30_000, NOW + 30_000, 4), '0')
  })

  it('never makes a count negative', async () => {
    assert.equal(await refunded(30_000, NOW + 30_000, 3), '3')
  })

  it('never makes a counter', async () => {
    await redis.eval(REFUND, 1, 'nothing', NOW, 4, NOW + 30_000)
    assert.equal(await redis.exists('nothing'), 0)
  })
})
