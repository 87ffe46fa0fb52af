import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openLimitStores } from '../../../examples/gateway/stores/limit-stores.ts'
import { demand, limit } from '../../middleware/rate-limit/demands.ts'
import { WITHOUT_REDIS } from '../../support/redis-server.ts'
import { untilAsync } from '../../support/until.ts'
import { watchedRedis } from './watched-redis.ts'

const SILENT = { info() {}, warn() {}, error() {} }

describe('limits in a Redis that was away', { skip: WITHOUT_REDIS, timeout: 120_000 }, () => {
  it('go on behind the promoted replica while the old master hangs with its connections', async (t) => {
    const { master, replica, url } = await watchedRedis(t)
    const limits = await openLimitStores(url, SILENT)
    t.after(() => limits.close())
    await limits.ping()

    master.pause()
    const promoted = async () => `${await replica.client().call('ROLE')}`.startsWith('master')
    await untilAsync(promoted, 'the promotion')
    const answers = () =>
      limits.ping().then(
        () => true,
        () => false,
      )
    await untilAsync(answers, 'the recovery', 15_000)
    assert.equal(limits.state?.away, false)
  })

  it('leave a master that is replaced while it serves, before sentinels end its connections', async (t) => {
    const { replica, sentinel, url } = await watchedRedis(t)
    const limits = await openLimitStores(url, SILENT)
    t.after(() => limits.close())
    await limits.ping()
    const successor = replica.client()
    const watch = sentinel.client()
    const failover = () =>
      watch.call('SENTINEL', 'FAILOVER', 'limits').then(
        () => true,
        // It must have heard from the replica first.
        () => false,
      )
    await untilAsync(failover, 'the failover')
    await untilAsync(async () => `${await successor.call('ROLE')}`.startsWith('master'), 'the promotion')
    let subject = 0
    const countsThere = async () => {
      await Promise.resolve(limits.limits.admit(demand([limit('rpm', `s${++subject}`, 5)]))).catch(() => {})
      return (await successor.get(`gateway:limits:rpm:key:s${subject}`)) === '1'
    }
    await untilAsync(countsThere, 'the successor counts', 6000)
  })

  it('are asked again within a second, however long it was away', async (t) => {
    const tries: number[] = []
    // It takes the connection, and is gone.
    const server = createServer((socket) => {
      tries.push(performance.now())
      socket.destroy()
    }).listen(0, '127.0.0.1')
    t.after(() => server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const limits = await openLimitStores(`redis://127.0.0.1:${port}`, SILENT)
    t.after(() => limits.close())
    await sleep(6000)
    const gaps = tries.slice(1).map((at, i) => at - (tries[i] as number))
    assert.ok(tries.length > 6 && Math.max(...gaps) < 1000, `${gaps.map(Math.round)}`)
  })
})
