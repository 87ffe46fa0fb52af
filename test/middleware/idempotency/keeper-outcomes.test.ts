import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { StoreAway, StoreGuard } from '../../../lib/core/store-guard/index.ts'
import { ClaimKeeper, HeldClaim } from '../../../lib/middleware/idempotency/claim-keeper.ts'
import { MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'
import { clockOf } from './faked-clock.ts'

const LEASE_MS = 60_000
const KEEP_MS = 3_600_000

/** A keeper on the clock of the test, and the operations that its store was asked for. */
function keeperOf(t: TestContext, { probeMs = 0 } = {}) {
  const clock = clockOf(t)
  const logger = recordingLogger()
  const store = new MemoryIdempotencyStore()
  const asked: string[] = []
  const faults = new Set<string>()
  for (const operation of ['claim', 'renew', 'complete', 'release', 'prune'] as const) {
    const run = store[operation].bind(store) as (...given: unknown[]) => Promise<unknown>
    t.mock.method(store, operation, async (...given: unknown[]) => {
      const [of] = given as [{ id?: string }]
      asked.push(of?.id === undefined ? operation : `${operation} ${of.id}`)
      if (faults.has(operation)) throw new Error(`${operation} fails`)
      return run(...given)
    })
  }
  const guard = new StoreGuard({ name: 'claims', logger, probeMs })
  const keeper = new ClaimKeeper({ store, guard, logger, claimLeaseMs: LEASE_MS, keepRecordsMs: KEEP_MS })
  const claim = async (id: string) => {
    const held = await keeper.claim({ id, owner: `req_${id}` }, 'f')
    assert.ok(held instanceof HeldClaim)
    return held
  }
  const pass = async (ms: number) => {
    clock.tick(ms)
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
  }
  const messages = () => logger.lines.map(({ message }) => message)
  const count = (operation: string) => asked.filter((each) => each.startsWith(operation)).length
  return { keeper, store, claim, pass, messages, asked, faults, count, logger }
}

describe('a claim', () => {
  it('has its call, how long it is kept, and a lease from when it was asked for', async (t) => {
    const { claim, store } = keeperOf(t)
    const held = await claim('a')
    assert.deepEqual([held.id, held.owner, held.keepMs, held.state], ['a', 'req_a', KEEP_MS, 'running'])
    const record = await store.claim({
      id: 'a',
      owner: 'x',
      fingerprint: 'f',
      now: Date.now(),
      leaseUntil: 1,
    })
    assert.deepEqual(record, {
      owner: 'req_a',
      fingerprint: 'f',
      state: 'running',
      expiresAt: Date.now() + LEASE_MS,
    })
  })

  it('that was never asked for is not given back, either', async (t) => {
    const { keeper, faults, pass, count } = keeperOf(t, { probeMs: 500 })
    faults.add('claim')
    await assert.rejects(keeper.claim({ id: 'a', owner: 'a' }, 'f'), StoreAway)
    assert.equal(count('claim'), 1)
    await assert.rejects(keeper.claim({ id: 'b', owner: 'b' }, 'f'), StoreAway)
    assert.equal(count('claim'), 1, 'the store is away')
    faults.clear()
    await pass(1000)
    assert.deepEqual([count('release a'), count('release b')], [1, 0])
  })

  it('is not renewed once it is completed or given back, and its store is then left alone', async (t) => {
    const { keeper, claim, pass, asked, count } = keeperOf(t)
    const [completed, released] = [await claim('a'), await claim('b')]
    assert.equal(await keeper.complete(completed), true)
    await keeper.release(released)
    assert.deepEqual([completed.state, released.state], ['completed', 'released'])
    await pass(LEASE_MS / 4)
    assert.equal(count('renew'), 0)
    const { length } = asked
    for (let i = 0; i < 10; i++) await pass(LEASE_MS)
    assert.equal(asked.length, length)
  })
})

describe('the completion of a claim', () => {
  it('records the answer for repetitions, which the claim has no longer', async (t) => {
    const { keeper, claim } = keeperOf(t)
    const held = await claim('a')
    held.answer = 'the answer'
    assert.equal(await keeper.complete(held), true)
    assert.equal(held.answer, undefined)
    const again = await keeper.claim({ id: 'a', owner: 'b' }, 'f')
    assert.ok(!(again instanceof HeldClaim))
    assert.deepEqual(
      [again.state, again.answer, again.expiresAt - Date.now()],
      ['completed', 'the answer', KEEP_MS],
    )
  })

  it('keeps the answer until it is confirmed', async (t) => {
    const { keeper, claim, faults, pass } = keeperOf(t)
    const held = await claim('a')
    held.answer = 'the answer'
    faults.add('complete')
    await assert.rejects(keeper.complete(held), StoreAway)
    assert.deepEqual([held.state, held.answer], ['settling', 'the answer'])
    faults.clear()
    await pass(1000)
    assert.deepEqual([held.state, held.answer], ['completed', undefined])
    const again = await keeper.claim({ id: 'a', owner: 'b' }, 'f')
    assert.equal((again as { answer?: string }).answer, 'the answer')
  })

  it('of a claim that another call has is none, and that is told once', async (t) => {
    const { keeper, claim, store, pass, logger, count } = keeperOf(t)
    const held = await claim('a')
    store.free(held)
    assert.equal(await keeper.complete(held), false)
    assert.equal(held.state, 'lost')
    await pass(LEASE_MS)
    assert.equal(count('complete'), 1)
    assert.deepEqual(logger.lines, [
      {
        level: 'warn',
        fields: { requestId: 'req_a' },
        message: 'idempotency: a claim was lost to a later call',
      },
    ])
  })

  it('that is found out late to be none is told, too, and not asked for again', async (t) => {
    const { keeper, claim, store, faults, pass, count, messages } = keeperOf(t)
    const held = await claim('a')
    faults.add('complete')
    await assert.rejects(keeper.complete(held), StoreAway)
    faults.clear()
    store.free(held)
    await pass(1000)
    assert.equal(held.state, 'lost')
    await pass(LEASE_MS)
    assert.equal(count('complete'), 2)
    assert.equal(messages().filter((each) => each.includes('was lost')).length, 1)
  })
})

describe('a later call', () => {
  it('waits for no completion and no release of another key, and has its own only if that is free again', async (t) => {
    const { keeper, claim, faults, pass, count } = keeperOf(t)
    const [completed, released] = [await claim('a'), await claim('b')]
    faults.add('complete').add('release').add('renew')
    await assert.rejects(keeper.complete(completed), StoreAway)
    await keeper.release(released)
    await pass(LEASE_MS * 0.75)
    const before = [count('complete'), count('release')]
    assert.ok((await keeper.claim({ id: 'c', owner: 'c' }, 'f')) instanceof HeldClaim)
    assert.deepEqual([count('complete'), count('release')], before)
    const other = await keeper.claim({ id: 'b', owner: 'd' }, 'f')
    assert.equal(other.owner, released.owner)
    assert.deepEqual([count('complete'), count('release')], [before[0], before[1]! + 1])
    await assert.rejects(keeper.claim({ id: 'a', owner: 'd' }, 'f'), StoreAway)
    assert.equal(count('complete'), before[0]! + 1)
  })
})

describe('maintenance', () => {
  it('is not told as failing in an outage, which is told by itself', async (t) => {
    const { claim, faults, pass, messages } = keeperOf(t)
    await claim('a')
    faults.add('renew').add('prune')
    await pass(LEASE_MS / 4)
    await pass(1000)
    assert.deepEqual(messages(), ['store is away'])
  })

  it('ends with the keeper, also for what fails then', async (t) => {
    const { keeper, claim, faults, pass, asked, logger } = keeperOf(t)
    const held = await claim('a')
    await keeper.close(0)
    faults.add('release')
    await keeper.release(held)
    const { length } = asked
    await pass(LEASE_MS)
    assert.equal(asked.length, length)
    assert.equal(logger.lines.filter(({ message }) => message.includes('not settled')).length, 0)
  })

  it('has its end before the keeper asks again for what is not settled, so that nobody asks twice at a time', async (t) => {
    const { keeper, store, claim, faults, pass, count } = keeperOf(t)
    const [freed, other] = [await claim('a'), await claim('b')]
    faults.add('release')
    await keeper.release(freed)
    faults.clear()
    let go = (_kept: boolean): void => {}
    t.mock.method(store, 'complete', () => new Promise<boolean>((resolve) => (go = resolve)))
    const completing = keeper.complete(other)
    let closed = false
    void keeper.close(900).then(() => (closed = true))
    await pass(0)
    assert.deepEqual([count('release'), closed], [1, false])
    go(true)
    await completing
    await until(() => closed)
    assert.deepEqual([count('release'), freed.state], [2, 'released'])
  })
})
