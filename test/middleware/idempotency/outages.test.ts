import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { RedisIdempotencyStore } from '../../../lib/stores/redis/index.ts'
import type { Exchange } from '../../support/exchange.ts'
import { chatBody } from '../../support/gateway.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { chatAnswer, chatEvents, startUpstream, stream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { FaultyStore } from './faulty-store.ts'
import { type KeyedGateway, keyedGateway } from './keyed-gateway.ts'

const LEASE = 2000

async function faultyGateway(t: TestContext, leaseMs = LEASE) {
  const upstream = await startUpstream()
  t.after(() => upstream.close())
  const store = new FaultyStore(new MemoryIdempotencyStore())
  const changes: boolean[] = []
  const gateway = await keyedGateway(t, {
    lines: [upstream.url],
    idempotency: {
      store,
      claimLeaseMs: leaseMs,
      storeTimeoutMs: 250,
      onStoreChange: (away) => changes.push(away),
    },
  })
  return { upstream, store, gateway, changes }
}

/** Asks again, as a caller would, until something else than `codes` is answered. */
async function patiently(gateway: KeyedGateway, body: unknown, codes: readonly string[]): Promise<Exchange> {
  const deadline = performance.now() + 10_000
  for (;;) {
    const got = await gateway.exchange('k', body)
    if (!codes.includes(got.errorCode ?? '') || performance.now() > deadline) return got
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}

/** The log lines about the store's outages. */
const told = ({ logger }: KeyedGateway) =>
  logger.lines
    .filter(({ message }) => message.startsWith('store'))
    .map(({ level, message }) => [level, message] as const)

describe('while the store is away', () => {
  for (const fault of ['fails', 'hangs', 'unheard'] as const) {
    it(`a request with a key is refused and not run, one without is served (it ${fault})`, async (t) => {
      const { upstream, store, gateway, changes } = await faultyGateway(t)
      // One that works, such as the maintenance of a slow test, would bring the store back.
      for (const operation of ['claim', 'renew', 'complete', 'release', 'prune'] as const)
        store.faults.set(operation, fault)
      // A store that fails at once is away when all have failed for a while.
      for (let i = 0; i < 5 || changes.length === 0; i++) {
        const asked = performance.now()
        const refused = await gateway.exchange('k')
        assert.ok(performance.now() - asked < 5000)
        assert.equal(refused.status, 500)
        assert.equal(refused.errorCode, 'internal_error')
        assert.match(refused.envelope().error.message, /nothing was run/)
        assert.equal(refused.headers.get('x-should-retry'), null)
      }
      assert.equal(upstream.requests.length, 0)
      assert.equal((await gateway.exchange(undefined)).status, 200)
      const away = ['error', 'store is away']
      assert.deepEqual(told(gateway), [away], 'told once')

      store.faults.clear()
      const back = await patiently(gateway, chatBody(), ['internal_error'])
      // A claim that happened unheard is given back as soon as the store answers.
      const got =
        back.status === 200 ? back : await patiently(gateway, chatBody(), ['idempotency_key_in_use'])
      assert.equal(got.status, 200)
      assert.equal(upstream.requests.length, 2)
      assert.deepEqual(told(gateway), [away, ['warn', 'store is back']])
      assert.deepEqual(changes, [true, false])
    })
  }

  for (const streamed of [false, true]) {
    for (const fault of ['fails', 'unheard'] as const) {
      it(`an answer is not finished as a success, and not run again (${streamed ? 'streamed' : 'plain'}, it ${fault})`, async (t) => {
        const { upstream, store, gateway } = await faultyGateway(t)
        upstream.script = (res) => (streamed ? stream(res, chatEvents(['Hi', ' there'])) : chatAnswer(res))
        const body = chatBody({ stream: streamed })
        store.faults.set('complete', fault)
        const first = await gateway.exchange('k', body)
        if (streamed) {
          assert.equal(first.broken, true)
          assert.doesNotMatch(first.text, /"finish_reason":"stop"|\[DONE\]/)
          assert.match(first.text, /"code":"internal_error"/)
        } else {
          assert.equal(first.status, 500)
          assert.equal(first.errorCode, 'internal_error')
          assert.match(first.envelope().error.message, /not run or charged twice/)
        }
        if (fault === 'fails') {
          // Which of the two depends on how old the claim is by now; it is not run again on either.
          const meanwhile = await gateway.exchange('k', body)
          assert.match(String(meanwhile.errorCode), /^(idempotency_key_in_use|internal_error)$/)
          assert.equal(upstream.requests.length, 1)
        }
        store.faults.clear()
        const second = await patiently(gateway, body, ['idempotency_key_in_use', 'internal_error'])
        assert.equal(second.errorCode, 'idempotency_key_replayed')
        assert.equal(second.envelope().error.details?.original_request_id, first.requestId)
        assert.equal(upstream.requests.length, 1)
        const { response_body } = await gateway.entry(first.requestId)
        assert.match(response_body ?? '', /there|Hello/, 'what was produced is in the call log')
        assert.match(response_body ?? '', /"finish_reason":"stop"/)
        assert.doesNotMatch(response_body ?? '', /internal_error/)
      })
    }
  }

  it('a refusal further down is answered all the same, and its key freed afterwards', async (t) => {
    // Its lease does not run out meanwhile: the key is freed.
    const { upstream, store, gateway } = await faultyGateway(t, 10 * LEASE)
    upstream.script = (res) => void res.writeHead(400).end('{}')
    store.faults.set('release', 'fails')
    const first = await gateway.exchange('k')
    assert.equal(first.errorCode, 'invalid_request')
    store.faults.clear()
    upstream.script = (res) => chatAnswer(res)
    const codes = ['idempotency_key_in_use', 'internal_error']
    assert.equal((await patiently(gateway, chatBody(), codes)).status, 200)
  })
})

describe('Redis in the middle of calls', { skip: WITHOUT_REDIS }, () => {
  it('killed and started again, empty: nothing hangs, nothing runs twice at once, and keys work again', async (t) => {
    const redis = await startRedis()
    t.after(() => redis.close())
    const upstream = await startUpstream()
    t.after(() => upstream.close())
    const store = new RedisIdempotencyStore({ redis: redis.client() })
    const gateway = await keyedGateway(t, {
      lines: [upstream.url],
      idempotency: { store, claimLeaseMs: LEASE, storeTimeoutMs: 1000 },
    })
    assert.equal((await gateway.exchange('before')).status, 200)
    assert.equal((await gateway.exchange('before')).errorCode, 'idempotency_key_replayed')

    let finish = () => {}
    upstream.script = (res) => {
      finish = () => chatAnswer(res)
    }
    const running = gateway.exchange('k')
    await until(() => upstream.requests.length === 2, 'the call in the middle')
    await redis.kill()
    const asked = performance.now()
    assert.equal((await gateway.exchange('other')).errorCode, 'internal_error')
    assert.ok(performance.now() - asked < 5000)
    finish()
    assert.equal((await running).errorCode, 'internal_error', 'its record cannot be completed')
    upstream.script = (res) => chatAnswer(res)
    assert.equal((await gateway.exchange(undefined)).status, 200)

    await redis.restart()
    const again = await patiently(gateway, chatBody(), ['internal_error', 'idempotency_key_in_use'])
    assert.equal(again.status, 200, 'without persistence a restart frees every key')
    assert.equal((await gateway.exchange('k')).errorCode, 'idempotency_key_replayed')
  })

  it('paused for a while: a call that runs through it completes its record', async (t) => {
    const redis = await startRedis()
    t.after(() => redis.close())
    const upstream = await startUpstream()
    t.after(() => upstream.close())
    const store = new RedisIdempotencyStore({ redis: redis.client() })
    const gateway = await keyedGateway(t, {
      lines: [upstream.url],
      idempotency: { store, claimLeaseMs: 30_000, storeTimeoutMs: 1000 },
    })
    let finish = () => {}
    upstream.script = (res) => {
      finish = () => chatAnswer(res)
    }
    const running = gateway.exchange('k')
    await until(() => upstream.requests.length === 1, 'the call')
    redis.pause()
    assert.equal((await gateway.exchange('k')).errorCode, 'internal_error')
    redis.resume()
    const meanwhile = await patiently(gateway, chatBody(), ['internal_error'])
    assert.equal(meanwhile.errorCode, 'idempotency_key_in_use')
    finish()
    assert.equal((await running).status, 200)
    assert.equal((await gateway.exchange('k')).errorCode, 'idempotency_key_replayed')
    assert.equal(upstream.requests.length, 1)
  })
})
