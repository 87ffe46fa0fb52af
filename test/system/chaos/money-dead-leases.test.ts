import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openDatabase } from '../../../lib/stores/sql/index.ts'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { chatAnswer, chatChunk, chatEvents, stream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { FAST, theirMs } from './fast-gateways.ts'
import { booksOf, paidGateways, pay, sawEnd, shutDown } from './paid-gateways.ts'

const KILLS = 2
/** By the clocks of the gateways. */
const BACK_WITHIN_MS = 45_000
const TIMEOUT_MS = 240_000

const CONFIG = {
  accounts: [{ id: 'acme', balance: '1000' }],
  keys: [{ id: 'k', account: 'acme', quota: '500' }],
  price: { perRequest: '0.01' },
}

/** The processes that have leases, as the rows say. */
async function ownersIn(t: TestContext, url: string): Promise<() => Promise<Set<string>>> {
  const db = await openDatabase(url, { logger: recordingLogger() })
  t.after(() => db.destroy())
  return async () => {
    const open = await db.selectFrom('leases').select('owner').where('ended_at', 'is', null).execute()
    return new Set(open.map(({ owner }) => owner))
  }
}

describe('leases of processes that were killed', { concurrency: true, timeout: TIMEOUT_MS }, () => {
  for (const { name, url, skip } of BACKENDS) {
    it(`are back within 45 s, those of the living stay: ${name}`, {
      skip,
      timeout: TIMEOUT_MS,
    }, async (t) => {
      const databaseUrl = await url(t)
      const owners = await ownersIn(t, databaseUrl)
      const over = Promise.withResolvers<void>()
      const world = await paidGateways(
        t,
        databaseUrl,
        CONFIG,
        async (res, { json }) => {
          if (json.stream) {
            await stream(res, [chatChunk({ content: 'one ' })], { end: false })
            await over.promise
            for (const event of chatEvents(['two'])) res.write(event)
            res.end()
          } else chatAnswer(res)
        },
        FAST,
      )
      const call = { text: 'Hello', key: 'k' }
      const [busy, watching] = await Promise.all([world.start(), world.start()])
      // One that goes on all the while holds what it may cost in a lease of a process that lives.
      const long = { ...call, stream: true }
      const running = pay(busy, long)
      await until(() => world.upstream.requests.length === 1, 'the long call')
      const living = await owners()
      assert.equal(living.size, 1)

      /** How long it takes, by the clocks of the gateways, until a dead process has no lease any more. */
      const untilBack = async (owner: string): Promise<number> => {
        for (const diedAt = performance.now(); ; await sleep(100)) {
          const ms = theirMs(performance.now() - diedAt)
          if (!(await owners()).has(owner)) return ms
          assert.ok(ms < BACK_WITHIN_MS, `the lease of ${owner} is there after ${ms} ms`)
        }
      }
      const waits = new Map<string, Promise<number>>()
      for (let kill = 0; kill < KILLS; kill++) {
        const gateway = await world.start()
        await Promise.all(Array.from({ length: 20 }, () => pay(gateway, call)))
        await gateway.stop()
        for (const owner of await owners()) {
          if (living.has(owner) || waits.has(owner)) continue
          const wait = untilBack(owner)
          wait.catch(() => {})
          waits.set(owner, wait)
        }
      }
      assert.equal(waits.size, KILLS)
      const after = await Promise.all(waits.values())
      t.diagnostic(`${name}: back after ${after.map((ms) => `${(ms / 1000).toFixed(1)} s`).join(', ')}`)

      assert.deepEqual(await owners(), living)
      over.resolve()
      const answer = await running
      assert.ok(sawEnd(long, answer))
      const returned = [busy, watching].flatMap(({ logged }) => logged).filter(({ lease }) => lease)
      assert.ok(returned.length >= KILLS)
      assert.ok(returned.every(({ owner }) => !living.has(`${owner}`)))
      await shutDown([busy, watching])
      const { violations, leased, openLeases, overrun, charged } = await booksOf(databaseUrl)
      assert.deepEqual([violations, leased, openLeases, overrun], [[], 0n, 0, 0n])
      assert.equal(charged.get(answer.requestId), 10_000_000n)
    })
  }
})
