import assert from 'node:assert/strict'
import { type AddressInfo, connect, createServer } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { Redis } from 'ioredis'
import { RedisLimitStore } from '../../../lib/stores/redis/index.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { demand, limit } from './demands.ts'

const MAX = 5

/** A Redis behind a connection that breaks when it has done something and is about to answer it. */
async function breakingRedis(t: TestContext) {
  const server = await startRedis()
  /** The number of answers until one is lost; 0: none will be. */
  let answersLeft = 0
  const network = createServer((socket) => {
    const peer = connect(server.port, '127.0.0.1')
    for (const [one, other] of [
      [socket, peer],
      [peer, socket],
    ] as const) {
      one.on('error', () => {})
      one.on('close', () => other.destroy())
    }
    socket.pipe(peer)
    peer.on('data', (answer) => {
      if (answersLeft > 0 && --answersLeft === 0) socket.destroy()
      else socket.write(answer)
    })
  })
  await new Promise<void>((resolve) => network.listen(0, '127.0.0.1', resolve))
  const redis = new Redis((network.address() as AddressInfo).port, '127.0.0.1', { retryStrategy: () => 10 })
  redis.on('error', () => {})
  t.after(async () => {
    redis.disconnect()
    network.close()
    await server.close()
  })
  return {
    store: new RedisLimitStore({ redis, timeoutMs: 5000 }),
    direct: server.client(),
    loseAnswer: (place: number) => {
      answersLeft = place
    },
    get isLost() {
      return answersLeft === 0
    },
  }
}

describe('a connection to Redis that breaks', { skip: WITHOUT_REDIS }, () => {
  for (const lost of [1, 2, 3, 4])
    it(`admits nothing beyond a limit, if answer ${lost} to a refused request is lost and repeated`, async (t) => {
      const { store, direct, loseAnswer } = await breakingRedis(t)
      const ask = () => store.admit(demand([limit('rpm', 's', MAX), limit('tpm', 's', 100, 10)]))
      let admitted = 0
      for (let i = 0; i < MAX; i++) if (!(await ask()).refusedBy) admitted++
      assert.equal(admitted, MAX)
      loseAnswer(lost)
      assert.equal((await ask()).refusedBy?.kind, 'rpm')
      // The points may still be on their way back.
      loseAnswer(0)
      assert.equal((await ask()).refusedBy?.kind, 'rpm')
      assert.ok(Number(await direct.get('gateway:limits:rpm:key:s')) >= MAX)
      assert.ok(Number(await direct.get('gateway:limits:tpm:key:s')) >= MAX * 10)
    })
})
