import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { before, beforeEach, describe, it } from 'node:test'
import { createApp } from '../../examples/rate-limit-only/app.ts'
import { RedisLimitStore } from '../../lib/stores/redis/index.ts'
import { recordingLogger } from '../support/app-server.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { listen } from '../support/gateway.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../support/redis-server.ts'

describe('an app with limits and nothing else, twice on one Redis', { skip: WITHOUT_REDIS }, () => {
  let redis: RedisServer
  let servers: Server[] = []
  let asked = 0
  const cleanUp = cleaningUp()
  before(async () => {
    redis = await startRedis()
    cleanUp.after(() => redis.close())
    const open = () =>
      listen(
        createApp({
          store: new RedisLimitStore({ redis: redis.client(), logger: recordingLogger(), timeoutMs: 5000 }),
        }),
      )
    servers = await Promise.all([open(), open()])
    for (const server of servers) cleanUp.after(() => server.close().closeAllConnections())
  })
  beforeEach(() => redis.client().flushall())

  /** Asks one process after the other. */
  const get = (path: string, user?: string) => {
    const { port } = servers[asked++ % 2]!.address() as AddressInfo
    return fetch(`http://127.0.0.1:${port}${path}`, { headers: user === undefined ? {} : { 'x-user': user } })
  }
  const statuses = async (times: number, user?: string) => {
    const seen: number[] = []
    for (let i = 0; i < times; i++) seen.push((await get('/search', user)).status)
    return seen
  }

  it('leaves what has no limits alone', async () => {
    for (let i = 0; i < 30; i++) assert.equal((await get('/')).status, 200)
  })

  it('limits each user as far as it may go', async () => {
    assert.deepEqual(await statuses(6, 'ann'), [200, 200, 200, 200, 200, 429])
    assert.equal((await statuses(11, 'customer-1')).filter((status) => status === 200).length, 10)
  })

  it('limits an address, and does not count for it what was refused', async () => {
    await statuses(10, 'ann')
    assert.equal((await statuses(16)).filter((status) => status === 200).length, 15)
  })

  it('answers in the error envelope, with the time to wait', async () => {
    await statuses(5, 'ann')
    const refused = await get('/search', 'ann')
    const { error } = (await refused.json()) as { error: { code: string } }
    assert.equal(error.code, 'rate_limited')
    assert.ok(Number(refused.headers.get('retry-after')) > 50)
  })

  it('lets a user run two reports at a time', async () => {
    const running = await Promise.all([get('/report', 'ann'), get('/report', 'ann')])
    assert.deepEqual(
      running.map(({ status }) => status),
      [200, 200],
    )
    const refused = await get('/report', 'ann')
    assert.equal(refused.status, 429)
    assert.match(await refused.text(), /concurrency_limited/)
    await Promise.all(running.map((answer) => answer.text()))
  })
})
