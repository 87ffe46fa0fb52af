import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { type IdempotencyStore, MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { chatBody } from '../../support/gateway.ts'
import { answerJson, chatAnswer, chatEvents, startUpstream, stream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { FaultyStore } from './faulty-store.ts'
import { keyedGateway } from './keyed-gateway.ts'

/** A store that keeps the record of the last claim, so that a test can take it over as another process would. */
class WatchedStore extends MemoryIdempotencyStore {
  id = ''
  owner = ''

  override claim(request: Parameters<MemoryIdempotencyStore['claim']>[0]) {
    this.id = request.id
    this.owner = request.owner
    return super.claim(request)
  }

  async takeOver(): Promise<void> {
    const now = Date.now() + 120_000
    const thief = { id: this.id, owner: 'thief', fingerprint: 'f', now, leaseUntil: now + 60_000 }
    assert.equal(await super.claim(thief), undefined)
  }

  async assertStillTaken(): Promise<void> {
    assert.deepEqual(await super.renew([{ id: this.id, owner: 'thief' }], Date.now() + 60_000), [true])
  }
}

async function upstreams(t: TestContext) {
  const [one, other] = [await startUpstream(), await startUpstream()]
  t.after(() => Promise.all([one.close(), other.close()]))
  return [one, other] as const
}

/** A gateway whose first line answers nothing until the test calls `fail`; a failover goes to `other`. */
async function hangingAttempt<Store extends IdempotencyStore>(t: TestContext, store: Store, leaseMs: number) {
  const [one, other] = await upstreams(t)
  let fail = () => {}
  one.script = (res) => {
    fail = () => answerJson(res, 500, {})
  }
  const gateway = await keyedGateway(t, {
    lines: [one.url, other.url],
    idempotency: { store, claimLeaseMs: leaseMs },
  })
  return { gateway, store, one, other, fail: () => fail() }
}

describe('a call whose claim was taken over', () => {
  it('starts no further attempt and ends in an error', async (t) => {
    const { gateway, store, one, other, fail } = await hangingAttempt(t, new WatchedStore(), 4000)
    const call = gateway.exchange('k')
    await until(() => one.requests.length === 1, 'the first attempt')
    await store.takeOver()
    await until(() => gateway.logger.lines.length > 0, 'the renewal noticing')
    fail()
    const got = await call
    assert.equal(got.errorCode, 'idempotency_key_in_use')
    assert.equal(got.headers.get('x-should-retry'), 'true')
    assert.equal(other.requests.length, 0, 'no failover')
    await store.assertStillTaken()
    assert.deepEqual(
      gateway.logger.lines.map(({ level, fields }) => [level, fields.requestId]),
      [['warn', got.requestId]],
    )
  })

  it('does not finish its answer, whatever it knows: the record decides', async (t) => {
    for (const streamed of [false, true]) {
      const [one] = await upstreams(t)
      const store = new WatchedStore()
      one.script = async (res) => {
        await store.takeOver()
        if (streamed) await stream(res, chatEvents(['Hello']))
        else chatAnswer(res)
      }
      const gateway = await keyedGateway(t, { lines: [one.url], idempotency: { store } })
      const got = await gateway.exchange('k', chatBody({ stream: streamed }))
      if (streamed) {
        assert.equal(got.broken, true)
        assert.doesNotMatch(got.text, /"finish_reason":"stop"|\[DONE\]/)
        assert.match(got.text, /"code":"idempotency_key_in_use"/)
      } else {
        assert.equal(got.status, 409)
        assert.equal(got.errorCode, 'idempotency_key_in_use')
      }
      await store.assertStillTaken()
    }
  })
})

describe('a call whose claim is not renewed', () => {
  const faulty = () => new FaultyStore(new MemoryIdempotencyStore())

  it('starts no attempt once the last renewal is older than three quarters of the lease', async (t) => {
    const { gateway, store, one, other, fail } = await hangingAttempt(t, faulty(), 1000)
    const asked = performance.now()
    const call = gateway.exchange('k')
    await until(() => one.requests.length === 1, 'the first attempt')
    store.faults.set('renew', 'fails')
    await until(() => performance.now() - asked > 1050, 'the end of the lease')
    fail()
    assert.equal((await call).errorCode, 'idempotency_key_in_use')
    assert.equal(other.requests.length, 0)
  })

  it('goes on when it is renewed, however long it takes', async (t) => {
    const { gateway, store, other, fail } = await hangingAttempt(t, faulty(), 1000)
    const asked = performance.now()
    const call = gateway.exchange('k')
    await until(() => performance.now() - asked > 1300, 'more than a lease')
    assert.equal((await gateway.exchange('k')).errorCode, 'idempotency_key_in_use')
    fail()
    assert.equal((await call).status, 200)
    assert.equal(other.requests.length, 1)
    assert.ok(store.asked.filter((operation) => operation === 'renew').length >= 2)
  })
})
