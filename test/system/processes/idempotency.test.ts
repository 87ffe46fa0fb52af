import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { postTo } from '../../middleware/idempotency/keyed-gateway.ts'
import { postgresUrl } from '../../stores/sql/support/postgres-database.ts'
import { databaseUrl } from '../../stores/sql/support/temporary-database.ts'
import { type Exchange, readExchange } from '../../support/exchange.ts'
import { chatBody, KEY } from '../../support/gateway.ts'
import { OWN_PROGRAM_FLAGS } from '../../support/own-program.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import {
  answerJson,
  chatAnswer,
  type ScriptedUpstream,
  startUpstream,
} from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

const PROGRAM = fileURLToPath(new URL('./idempotency-process.ts', import.meta.url))

interface GatewayProcess {
  readonly child: ChildProcess
  exchange(key: string, body?: unknown): Promise<Exchange>
}

async function startProcess(
  t: TestContext,
  store: string,
  leaseMs: number,
  lines: readonly ScriptedUpstream[],
): Promise<GatewayProcess> {
  const given = [store, String(leaseMs), KEY, ...lines.map(({ url }) => url)]
  const child = spawn(process.execPath, [...OWN_PROGRAM_FLAGS, PROGRAM, ...given], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  const said = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const url = (await said.next()).value as string
  return { child, exchange: async (key, body = chatBody()) => readExchange(await postTo(url, key, body)) }
}

async function startTwo(t: TestContext, store: string, leaseMs: number, lines: readonly ScriptedUpstream[]) {
  return Promise.all([startProcess(t, store, leaseMs, lines), startProcess(t, store, leaseMs, lines)])
}

async function upstreamFor(t: TestContext): Promise<ScriptedUpstream> {
  const upstream = await startUpstream()
  t.after(() => upstream.close())
  return upstream
}

async function redisUrl(t: TestContext): Promise<string> {
  const redis = await startRedis()
  t.after(() => redis.close())
  return `redis://127.0.0.1:${redis.port}`
}

const BACKENDS = [
  { name: 'one SQLite file', open: databaseUrl, skip: false as const },
  { name: 'one Postgres', open: postgresUrl, skip: WITHOUT_POSTGRES },
  { name: 'one Redis', open: redisUrl, skip: WITHOUT_REDIS },
]

for (const { name, open, skip } of BACKENDS) {
  describe(`two processes on ${name}`, { skip, concurrency: true }, () => {
    it('run a key once that 200 requests come with at the same time', async (t) => {
      const upstream = await upstreamFor(t)
      upstream.script = async (res) => {
        await sleep(300)
        chatAnswer(res)
      }
      const gateways = await startTwo(t, await open(t), 60_000, [upstream])
      const all = await Promise.all(
        Array.from({ length: 200 }, (_, i) => (gateways[i % 2] as GatewayProcess).exchange('k')),
      )
      const winners = all.filter(({ status }) => status === 200)
      assert.equal(upstream.requests.length, 1)
      assert.equal(winners.length, 1)
      const codes = new Set(all.filter(({ status }) => status !== 200).map(({ errorCode }) => errorCode))
      for (const code of codes) assert.match(code ?? '', /^idempotency_key_(in_use|replayed)$/)
      for (const { exchange } of gateways) {
        const later = await exchange('k')
        assert.equal(later.errorCode, 'idempotency_key_replayed')
        assert.equal(later.envelope().error.details?.original_request_id, winners[0]?.requestId)
      }
      assert.equal(upstream.requests.length, 1)
    })

    it('free the key of one that was killed when its lease ends, and not before', async (t) => {
      const LEASE = 2000
      const upstream = await upstreamFor(t)
      const [first, second] = await startTwo(t, await open(t), LEASE, [upstream])
      upstream.script = () => {}
      const asked = Date.now()
      const call = first.exchange('k').catch(() => 'cut')
      await until(() => upstream.requests.length === 1, 'the first call')
      first.child.kill('SIGKILL')
      assert.equal(await call, 'cut')
      upstream.script = (res) => chatAnswer(res)
      for (;;) {
        const got = await second.exchange('k')
        if (got.status === 200) break
        assert.equal(got.errorCode, 'idempotency_key_in_use')
        assert.ok(Date.now() - asked < 10 * LEASE, 'it is freed')
        await sleep(20)
      }
      const freed = Date.now() - asked
      assert.ok(freed >= LEASE, `free again after ${freed} ms`)
      assert.equal(upstream.requests.length, 2)
    })

    it('keep an owner that stood still beyond its lease from doing anything further', async (t) => {
      const LEASE = 2000
      const [one, other] = [await upstreamFor(t), await upstreamFor(t)]
      const [first, second] = await startTwo(t, await open(t), LEASE, [one, other])
      let fail = () => {}
      one.script = (res) => {
        fail = () => answerJson(res, 500, {})
      }
      const paused = first.exchange('k')
      await until(() => one.requests.length === 1, 'the first call')
      first.child.kill('SIGSTOP')
      one.script = (res) => chatAnswer(res)
      let got: Exchange
      do {
        await sleep(50)
        got = await second.exchange('k')
      } while (got.errorCode === 'idempotency_key_in_use')
      assert.equal(got.status, 200)
      fail()
      first.child.kill('SIGCONT')
      const fenced = await paused
      assert.equal(fenced.status, 409)
      assert.equal(fenced.errorCode, 'idempotency_key_in_use')
      assert.equal(other.requests.length, 0, 'it started no further attempt')
      const replayed = await second.exchange('k')
      assert.equal(replayed.errorCode, 'idempotency_key_replayed')
      assert.equal(replayed.envelope().error.details?.original_request_id, got.requestId)
    })

    it('keep an owner that stood still beyond its lease from handing its answer over', async (t) => {
      const LEASE = 2000
      const upstream = await upstreamFor(t)
      const [first, second] = await startTwo(t, await open(t), LEASE, [upstream])
      let answer = () => {}
      upstream.script = (res) => {
        answer = () => chatAnswer(res, 'from the one that stood still')
      }
      const paused = first.exchange('k')
      await until(() => upstream.requests.length === 1, 'the first call')
      first.child.kill('SIGSTOP')
      answer()
      let finish = () => {}
      upstream.script = (res) => {
        finish = () => chatAnswer(res)
      }
      const taking = (async () => {
        for (;;) {
          await sleep(50)
          const got = await second.exchange('k')
          if (got.errorCode !== 'idempotency_key_in_use') return got
        }
      })()
      await until(() => upstream.requests.length === 2, 'the second call')
      first.child.kill('SIGCONT')
      const fenced = await paused
      assert.equal(fenced.status, 409)
      assert.doesNotMatch(fenced.text, /stood still/)
      finish()
      const got = await taking
      assert.equal(got.status, 200)
      const replayed = await second.exchange('k')
      assert.equal(replayed.envelope().error.details?.original_request_id, got.requestId)
    })
  })
}
