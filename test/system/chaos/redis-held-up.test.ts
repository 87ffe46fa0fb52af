import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { eventually } from '../../support/app-server.ts'
import {
  type GatewayProcess,
  post,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { watchHeldUp } from '../../support/held-up.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'

const HELD_UP_MS = 6000
/** Longer than a busy machine takes for a call, and shorter than a call that waits until Redis goes on. */
const NO_CALL_WAITS_MS = 5000
/** How long a slot may stay taken that nobody renews. */
const SLOT_MS = 30_000
/** How often Redis is asked whether it is fit, and how long that may take. */
const NOTICED_MS = 10_000

/** How a Redis is held up, and goes on. */
const TROUBLES: Record<string, (redis: RedisServer) => Promise<() => Promise<void>>> = {
  'is frozen': async (redis) => {
    redis.pause()
    return async () => redis.resume()
  },
  'computes for seconds': async (redis) => {
    const client = redis.client()
    // Longer than it is watched: an answer of the last moment would be a recovery, and no wavering.
    const asleep = client.call('debug', 'sleep', `${(HELD_UP_MS + 1000) / 1000}`)
    await sleep(50)
    return async () => void (await asleep)
  },
  'is full': async (redis) => {
    const client = redis.client()
    await client.config('SET', 'maxmemory-policy', 'noeviction')
    await client.config('SET', 'maxmemory', '1')
    return async () => void (await client.config('SET', 'maxmemory', '0'))
  },
}

const chat = (text: string) => ({ model: 'm', messages: [{ role: 'user', content: text }] })
const as = (account: string) => ({ authorization: `Bearer sk-${account}` })

/** Two gateways over one Redis. A call that says "slow" is answered when `letGo` is called. */
async function twoGateways(t: TestContext, redis: RedisServer, onStoreError: string) {
  let answerSlow = (): void => {}
  const slow = new Promise<void>((resolve) => {
    answerSlow = resolve
  })
  const upstream = await startUpstream((res, { json }) => {
    if (String(json.messages[0]?.content) === 'slow') void slow.then(() => chatAnswer(res))
    else chatAnswer(res)
  })
  const folder = await temporaryFolder()
  const gateways: GatewayProcess[] = []
  t.after(async () => {
    answerSlow()
    await Promise.all(gateways.map((gateway) => gateway.stop()))
    await upstream.close()
    await folder.remove()
  })
  const line = {
    id: 'l',
    provider: 'p',
    protocol: 'openai',
    baseUrl: `${upstream.url}/v1`,
    models: { m: 'u' },
  }
  const config = {
    accounts: [
      { id: 'taken', limits: { concurrency: 2 } },
      { id: 'other', limits: { rpm: 100_000, concurrency: 50 } },
    ],
    keys: ['taken', 'other'].map((id) => ({ id, account: id, secret: `sk-${id}` })),
    models: [{ id: 'm', kind: 'chat' }],
    lines: [line],
    onStoreError,
  }
  const file = join(folder.path, 'config.json')
  await writeFile(file, JSON.stringify(config))
  for (const name of ['a', 'b']) {
    const gateway = await startGatewayProcess({
      GATEWAY_CONFIG: file,
      DATABASE_URL: `sqlite:${join(folder.path, `${name}.db`)}`,
      REDIS_URL: `redis://127.0.0.1:${redis.port}`,
    })
    gateways.push(gateway)
  }
  const [one, two] = gateways as [GatewayProcess, GatewayProcess]
  /** Takes both slots of an account at the first gateway. No other call may take one meanwhile. */
  const takeSlots = async (): Promise<void> => {
    const before = upstream.requests.length
    for (let i = 0; i < 2; i++) post(one.url, chat('slow'), as('taken')).catch(() => {})
    await eventually(() => upstream.requests.length === before + 2, 'both calls are under way')
  }
  return { one, two, takeSlots }
}

/** Notes each change of what /readyz answers, until `stop` is called. */
function watchReadiness({ url }: GatewayProcess) {
  const seen: number[] = []
  let isOver = false
  const watching = (async () => {
    while (!isOver) {
      const { status } = await fetch(`${url}/readyz`)
      if (seen.at(-1) !== status) seen.push(status)
      await sleep(100)
    }
  })()
  return {
    seen,
    async stop() {
      isOver = true
      await watching
      return seen
    },
  }
}

describe('a Redis that is held up', { skip: WITHOUT_REDIS, concurrency: 3, timeout: 600_000 }, () => {
  for (const [what, hold] of Object.entries(TROUBLES)) {
    for (const onStoreError of ['refuse', 'local']) {
      it(`${what}, with "${onStoreError}": readiness says so and does not waver, and slots come back`, async (t) => {
        const heldUp = watchHeldUp(t)
        const redis = await startRedis({ settings: ['--enable-debug-command', 'yes'] })
        t.after(() => redis.close())
        const { one, two, takeSlots } = await twoGateways(t, redis, onStoreError)
        assert.equal((await post(two.url, chat('hi'), as('other'))).status, 200)
        await takeSlots()
        assert.equal(
          (await post(two.url, chat('hi'), as('taken'))).status,
          429,
          'seen from the other gateway',
        )

        const readiness = watchReadiness(two)
        await sleep(200)
        const goOn = await hold(redis)
        const began = performance.now()
        one.kill('SIGKILL')
        const codes = new Set<string>()
        let slowest = 0
        while (performance.now() - began < HELD_UP_MS) {
          const asked = performance.now()
          const answer = await post(two.url, chat('hi'), as('other'))
          codes.add(answer.status === 200 ? '200' : `${(await envelopeOf(answer)).error.code}`)
          slowest = Math.max(slowest, performance.now() - asked)
          await sleep(20)
        }
        const during = [...readiness.seen]
        await goOn()
        const wentOn = performance.now()
        assert.ok(slowest < NO_CALL_WAITS_MS, `a call took ${slowest} ms`)
        // The first calls may still be counted in Redis.
        if (onStoreError === 'local') assert.deepEqual([...codes], ['200'])
        else
          assert.deepEqual(
            [...codes].filter((code) => code !== '200'),
            ['internal_error'],
          )

        // Nobody renews the slots of the process that was killed.
        let status = 0
        while (status !== 200) {
          const answer = await post(two.url, chat('hi'), as('taken'))
          status = answer.status
          if (performance.now() - wentOn > NOTICED_MS) assert.notEqual(status, 500, 'it is back')
          assert.ok(performance.now() - began < SLOT_MS + NOTICED_MS + heldUp(), 'a slot is free again')
          await sleep(500)
        }
        for (let i = 0; i < 5; i++) assert.equal((await post(two.url, chat('hi'), as('other'))).status, 200)
        const seen = await readiness.stop()
        const told = onStoreError === 'refuse' ? [200, 503, 200] : [200]
        assert.deepEqual(during, told.slice(0, 2), 'while it is held up')
        assert.deepEqual(seen, told, 'in all')
      })
    }
  }
})
