import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type LimitStore, MemoryLimitStore } from '../../../lib/middleware/rate-limit/index.ts'
import { RedisLimitStore } from '../../../lib/stores/redis/index.ts'
import { demand, limit } from '../../middleware/rate-limit/demands.ts'
import { limitedApp } from '../../middleware/rate-limit/limited-app.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { until } from '../../support/until.ts'

const ALL = 5000

describe('5,000 held calls of which half leave at once', () => {
  let server: RedisServer | undefined
  const cleanUp = cleaningUp()
  before(async () => {
    if (WITHOUT_REDIS) return
    server = await startRedis()
    cleanUp.after(() => server?.close())
  })

  const redisStore = () => {
    const redis = server!.client({ enableAutoPipelining: true })
    return new RedisLimitStore({ redis, logger: recordingLogger(), timeoutMs: 5000 })
  }
  const backends: [string, string | false, () => LimitStore][] = [
    ['memory', false, () => new MemoryLimitStore()],
    ['Redis', WITHOUT_REDIS, redisStore],
  ]
  for (const [name, skip, open] of backends) {
    it(`have their slots right within a second: ${name}`, { skip }, async (t) => {
      let begun = 0
      const store = open()
      const app = await limitedApp(t, {
        concurrency: ALL,
        store,
        handler: (_req, res) => {
          begun++
          res.write('.')
        },
      })
      const { port } = app.server.address() as { port: number }
      const sockets: Socket[] = []
      t.after(() => {
        for (const socket of sockets) socket.destroy()
      })
      // In batches: the queue of waiting connections is shorter than that.
      while (sockets.length < ALL) {
        for (let i = 0; i < 250; i++) {
          const socket = connect(port, '127.0.0.1').on('error', () => {})
          socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n')
          sockets.push(socket.resume())
        }
        await until(() => begun === sockets.length, 'all calls running')
      }
      /** Whether fewer than so many slots of the account are taken. */
      const fewerTakenThan = async (most: number) => {
        const key = 'concurrency:account:a1'
        const probe = demand([{ ...limit('concurrency', 'a1', most), key }])
        const { refusedBy } = await store.admit(probe)
        store.release(probe)
        return !refusedBy
      }
      assert.ok(!(await fewerTakenThan(ALL)))

      const ownMs = ownTime()
      for (const socket of sockets.slice(0, ALL / 2)) socket.destroy()
      while (!(await fewerTakenThan(ALL / 2 + 1))) await sleep(10)
      const took = ownMs()
      t.diagnostic(`right after ${Math.round(took)} ms`)
      assert.ok(took < 1000, `${took} ms`)
      assert.ok(!(await fewerTakenThan(ALL / 2)))
      assert.equal(app.calls.filter(({ ended }) => !ended).length, ALL / 2)
    })
  }
})

/** Returns a clock of the milliseconds in which this process worked or waited, while no other one had its CPU. */
function ownTime(): () => number {
  const loop = performance.eventLoopUtilization()
  const cpu = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(cpu)
    return performance.eventLoopUtilization(loop).idle + (user + system) / 1000
  }
}
