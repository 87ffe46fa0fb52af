import assert from 'node:assert/strict'
import { beforeEach, describe, it, type TestContext } from 'node:test'
import type { IdempotencyClaim } from '../../../lib/core/call/index.ts'
import { StoreAway, StoreGuard } from '../../../lib/core/store-guard/index.ts'
import { ClaimKeeper, HeldClaim } from '../../../lib/middleware/idempotency/claim-keeper.ts'
import { MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'
import { clockOf } from './faked-clock.ts'

const LEASE_MS = 60_000
const KEEP_MS = 3_600_000

type Operation = 'claim' | 'renew' | 'complete' | 'release' | 'prune'

/** A store that notes its operations and their times, and fails those that a test adds to `failing`. */
class NotedStore extends MemoryIdempotencyStore {
  readonly log: string[] = []
  readonly failing = new Set<Operation>()
  now = () => 0

  #note(operation: Operation, detail = ''): void {
    this.log.push(`${this.now()} ${operation}${detail}`)
    if (this.failing.has(operation)) throw new Error(`${operation} fails`)
  }

  override async claim(request: Parameters<MemoryIdempotencyStore['claim']>[0]) {
    this.#note('claim')
    return super.claim(request)
  }

  override async renew(claims: readonly IdempotencyClaim[], leaseUntil: number) {
    this.#note('renew', ` ${claims.map(({ id }) => id)} until ${leaseUntil - Date.now()}`)
    return super.renew(claims, leaseUntil)
  }

  override async complete(claim: IdempotencyClaim, keepUntil: number, answer?: string) {
    this.#note('complete', ` ${claim.id} for ${keepUntil - Date.now()}`)
    return super.complete(claim, keepUntil, answer)
  }

  override async release(claim: IdempotencyClaim) {
    this.#note('release', ` ${claim.id}`)
    return super.release(claim)
  }

  override async prune(now: number, limit: number) {
    this.#note('prune')
    return super.prune(now, limit)
  }
}

let store: NotedStore
beforeEach(() => {
  store = new NotedStore()
})

function keeperOf(t: TestContext, { probeMs = 0 } = {}) {
  const clock = clockOf(t)
  const began = performance.now()
  store.now = () => Math.round(performance.now() - began)
  const logger = recordingLogger()
  const guard = new StoreGuard({ name: 'claims', logger, probeMs })
  const keeper = new ClaimKeeper({ store, guard, logger, claimLeaseMs: LEASE_MS, keepRecordsMs: KEEP_MS })
  const claim = async (id: string) => {
    const held = await keeper.claim({ id, owner: `req_${id}` }, 'f')
    assert.ok(held instanceof HeldClaim)
    return held
  }
  /** Lets time pass, and what is due by then happen. */
  const pass = async (ms: number) => {
    clock.tick(ms)
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
  const messages = () => logger.lines.map(({ message }) => message)
  const only = (operation: Operation, id?: string) =>
    store.log.filter((line) => {
      const [, asked, of] = line.split(' ')
      return asked === operation && (id === undefined || id === of)
    })
  return { keeper, claim, pass, messages, only, logger }
}

describe('a claim that is held', () => {
  it('lets its call go on for three quarters of its lease since it was last renewed', async (t) => {
    const { keeper, claim, pass } = keeperOf(t)
    const held = await claim('a')
    store.failing.add('renew')
    await pass(44_999)
    assert.equal(keeper.maySend(held), true)
    await pass(1)
    assert.equal(keeper.maySend(held), false)
    store.failing.clear()
    await pass(1000)
    assert.equal(keeper.maySend(held), true, 'renewed again')
    for (const [state, may] of [
      ['completed', true],
      ['settling', false],
      ['lost', false],
      ['released', false],
    ] as const) {
      held.state = state
      assert.equal(keeper.maySend(held), may, state)
    }
  })

  it('is renewed every quarter of its lease, for a whole one, as long as it is held', async (t) => {
    const { keeper, claim, pass, only } = keeperOf(t)
    const held = await claim('a')
    await pass(14_999)
    assert.deepEqual(only('renew'), [])
    await pass(1)
    await pass(15_000)
    assert.deepEqual(only('renew'), ['15000 renew a until 60000', '30000 renew a until 60000'])
    await keeper.release(held)
    assert.equal(held.state, 'released')
    await pass(60_000)
    assert.equal(only('renew').length, 2)
  })

  it('that the store no longer has is lost, which is logged', async (t) => {
    const { keeper, claim, pass, messages, only } = keeperOf(t)
    const [lost, kept] = [await claim('lost'), await claim('kept')]
    store.free(lost)
    await pass(15_000)
    assert.deepEqual([lost.state, kept.state], ['lost', 'running'])
    assert.deepEqual(messages(), ['idempotency: a claim was lost to a later call'])
    assert.deepEqual([keeper.maySend(lost), keeper.maySend(kept)], [false, true])
    await pass(15_000)
    assert.equal(only('renew').at(-1), '30000 renew kept until 60000')
  })

  it('that is over by itself is renewed no more, and not logged', async (t) => {
    const { claim, pass, messages, only } = keeperOf(t)
    const held = await claim('a')
    held.state = 'completed'
    await pass(15_000)
    await pass(15_000)
    assert.deepEqual([only('renew').length, messages()], [1, []])
  })

  it('that a ledger is settling stays held, and its key counts as in use until that is known', async (t) => {
    const { keeper, claim, pass, only } = keeperOf(t)
    const held = await claim('a')
    held.state = 'settling'
    await store.complete(held, Date.now() + KEEP_MS)
    const again = () => keeper.claim({ id: 'a', owner: 'other' }, 'f')
    assert.equal(((await again()) as { state: string }).state, 'running')
    await pass(15_000)
    assert.equal(held.state, 'settling')
    const read = again()
    // The answer to a read may come behind the one that undoes what it read.
    held.state = 'released'
    assert.equal(((await read) as { state: string }).state, 'running')
    held.state = 'completed'
    assert.equal(((await again()) as { state: string }).state, 'completed')
    await pass(15_000)
    await pass(15_000)
    assert.equal(only('renew').length, 2, 'not renewed any more')
  })
})

describe('a store that fails', () => {
  it('is asked again each second for what it may have claimed, until that may have ended by itself', async (t) => {
    const { keeper, pass, only } = keeperOf(t)
    store.failing.add('claim').add('release')
    await assert.rejects(keeper.claim({ id: 'a', owner: 'o' }, 'f'), StoreAway)
    for (let second = 0; second < 65; second++) await pass(1000)
    const asked = only('release').map((line) => Number(line.split(' ')[0]))
    assert.deepEqual(
      asked,
      Array.from({ length: 60 }, (_, i) => 1000 * (i + 1)),
    )
  })

  it('is asked again for a completion, which is then kept from that time on', async (t) => {
    const { keeper, claim, pass, only, messages } = keeperOf(t)
    const held = await claim('a')
    held.answer = 'the answer'
    store.failing.add('complete')
    await assert.rejects(keeper.complete(held), StoreAway)
    assert.deepEqual([held.state, held.answer], ['settling', 'the answer'])
    store.failing.clear()
    await pass(1000)
    assert.deepEqual(only('complete'), [`0 complete a for ${KEEP_MS}`, `1000 complete a for ${KEEP_MS}`])
    assert.deepEqual([held.state, held.answer], ['completed', undefined])
    const again = await keeper.claim({ id: 'a', owner: 'b' }, 'f')
    assert.equal((again as { answer?: string }).answer, 'the answer')
    await pass(30_000)
    assert.equal(only('complete').length, 2)
    assert.deepEqual(messages(), ['store is away', 'store is back'])
  })

  it('is never asked twice at a time: an earlier due time replaces a later one', async (t) => {
    const { keeper, claim, pass, only } = keeperOf(t)
    await claim('a')
    const freed = await claim('b')
    await pass(500)
    store.failing.add('release')
    await keeper.release(freed)
    store.failing.clear()
    await pass(1000)
    assert.deepEqual(only('renew'), ['1500 renew a until 60000'])
    await pass(13_500)
    assert.deepEqual(only('renew').slice(1), [], 'not at 15 s, when it was due at first')
    await pass(1500)
    assert.deepEqual(only('renew').slice(1), ['16500 renew a until 60000'])
  })

  it('lets a later call have the key of one that never heard of its claim, without waiting for its turn', async (t) => {
    const { keeper, claim, only } = keeperOf(t)
    const made = store.claim.bind(store)
    store.claim = async (request) => {
      await made(request)
      throw new Error('the answer is lost')
    }
    await assert.rejects(keeper.claim({ id: 'a', owner: 'req_unheard' }, 'f'), StoreAway)
    store.claim = made
    await claim('a')
    assert.equal(only('release').length, 1)
  })

  it('lets a later call have the key of one that has run no sooner than that is recorded', async (t) => {
    const { keeper, claim, pass, only } = keeperOf(t)
    const held = await claim('a')
    store.failing.add('complete').add('renew')
    await assert.rejects(keeper.complete(held), StoreAway)
    const again = () => keeper.claim({ id: 'a', owner: 'other' }, 'f')
    const { length } = only('complete')
    assert.equal(((await again()) as { owner: string }).owner, 'req_a')
    assert.equal(only('complete').length, length, 'its lease still holds')
    await pass(45_000)
    const before = only('complete').length
    await assert.rejects(again(), StoreAway)
    assert.ok(only('complete').length > before)
    store.failing.clear()
    assert.equal(((await again()) as { state: string }).state, 'completed')
    assert.equal(held.state, 'completed')
    assert.ok((await keeper.claim({ id: 'b', owner: 'other' }, 'f')) instanceof HeldClaim)
  })
})

describe('the end of the process', () => {
  it('waits for nothing where all is settled, and asks nothing more', async (t) => {
    const { keeper, claim, pass, only, messages } = keeperOf(t)
    await claim('a')
    await keeper.close(1000)
    await pass(60_000)
    assert.deepEqual([only('renew'), messages()], [[], []])
  })

  it('asks again for what is not settled', async (t) => {
    const { keeper, claim, messages } = keeperOf(t)
    const held = await claim('a')
    store.failing.add('release')
    await keeper.release(held)
    store.failing.clear()
    await keeper.close(1000)
    assert.equal(held.state, 'released')
    assert.deepEqual(messages(), ['store is away', 'store is back'])
  })

  it('logs what is not settled by then', async (t) => {
    const { keeper, claim, logger } = keeperOf(t)
    const held = await claim('a')
    store.failing.add('complete')
    await assert.rejects(keeper.complete(held), StoreAway)
    await keeper.close(0)
    const told = logger.lines.at(-1)
    assert.equal(told?.message, 'idempotency: a claim is not settled at the end')
    assert.deepEqual(told?.fields, { requestId: 'req_a', state: 'settling' })
  })
})

describe('a claim that is asked for', () => {
  it('has its call, how long it is kept, and a lease from when it was asked for', async (t) => {
    const { claim } = keeperOf(t)
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
    const { keeper, pass, only } = keeperOf(t, { probeMs: 500 })
    store.failing.add('claim')
    await assert.rejects(keeper.claim({ id: 'a', owner: 'a' }, 'f'), StoreAway)
    assert.equal(only('claim').length, 1)
    await assert.rejects(keeper.claim({ id: 'b', owner: 'b' }, 'f'), StoreAway)
    assert.equal(only('claim').length, 1, 'the store is away')
    store.failing.clear()
    await pass(1000)
    assert.deepEqual([only('release', 'a').length, only('release', 'b').length], [1, 0])
  })
})

it('a store whose claims are all completed or released is left alone', async (t) => {
  const { keeper, claim, pass, only } = keeperOf(t)
  const [completed, released] = [await claim('a'), await claim('b')]
  assert.equal(await keeper.complete(completed), true)
  await keeper.release(released)
  await pass(LEASE_MS / 4)
  assert.equal(only('renew').length, 0)
  const { length } = store.log
  for (let i = 0; i < 10; i++) await pass(LEASE_MS)
  assert.equal(store.log.length, length)
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

  it('of a claim that another call has is none, and that is logged once', async (t) => {
    const { keeper, claim, pass, logger, only } = keeperOf(t)
    const held = await claim('a')
    store.free(held)
    assert.equal(await keeper.complete(held), false)
    assert.equal(held.state, 'lost')
    await pass(LEASE_MS)
    assert.equal(only('complete').length, 1)
    assert.deepEqual(logger.lines, [
      {
        level: 'warn',
        fields: { requestId: 'req_a' },
        message: 'idempotency: a claim was lost to a later call',
      },
    ])
  })

  it('that turns out late to be none is logged too, and not asked for again', async (t) => {
    const { keeper, claim, pass, only, messages } = keeperOf(t)
    const held = await claim('a')
    store.failing.add('complete')
    await assert.rejects(keeper.complete(held), StoreAway)
    store.failing.clear()
    store.free(held)
    await pass(1000)
    assert.equal(held.state, 'lost')
    await pass(LEASE_MS)
    assert.equal(only('complete').length, 2)
    assert.equal(messages().filter((each) => each.includes('was lost')).length, 1)
  })
})

describe('a later call', () => {
  it('waits for no completion and no release of another key, and has its own only if that is free again', async (t) => {
    const { keeper, claim, pass, only } = keeperOf(t)
    const [completed, released] = [await claim('a'), await claim('b')]
    store.failing.add('complete').add('release').add('renew')
    await assert.rejects(keeper.complete(completed), StoreAway)
    await keeper.release(released)
    await pass(LEASE_MS * 0.75)
    const before = [only('complete').length, only('release').length]
    assert.ok((await keeper.claim({ id: 'c', owner: 'c' }, 'f')) instanceof HeldClaim)
    assert.deepEqual([only('complete').length, only('release').length], before)
    const other = await keeper.claim({ id: 'b', owner: 'd' }, 'f')
    assert.equal(other.owner, released.owner)
    assert.deepEqual([only('complete').length, only('release').length], [before[0], before[1]! + 1])
    await assert.rejects(keeper.claim({ id: 'a', owner: 'd' }, 'f'), StoreAway)
    assert.equal(only('complete').length, before[0]! + 1)
  })
})

describe('the upkeep of claims', () => {
  it('is not logged as failing in an outage, which is logged by itself', async (t) => {
    const { claim, pass, messages } = keeperOf(t)
    await claim('a')
    store.failing.add('renew').add('prune')
    await pass(LEASE_MS / 4)
    await pass(1000)
    assert.deepEqual(messages(), ['store is away'])
  })

  it('ends with the keeper, also for what fails then', async (t) => {
    const { keeper, claim, pass, logger } = keeperOf(t)
    const held = await claim('a')
    await keeper.close(0)
    store.failing.add('release')
    await keeper.release(held)
    const { length } = store.log
    await pass(LEASE_MS)
    assert.equal(store.log.length, length)
    assert.equal(logger.lines.filter(({ message }) => message.includes('not settled')).length, 0)
  })

  it('ends before the keeper asks again for what is not settled, so that it never asks twice at a time', async (t) => {
    const { keeper, claim, pass, only } = keeperOf(t)
    const [freed, other] = [await claim('a'), await claim('b')]
    store.failing.add('release')
    await keeper.release(freed)
    store.failing.clear()
    let go = (_kept: boolean): void => {}
    t.mock.method(store, 'complete', () => new Promise<boolean>((resolve) => (go = resolve)))
    const completing = keeper.complete(other)
    let closed = false
    void keeper.close(900).then(() => (closed = true))
    await pass(0)
    assert.deepEqual([only('release').length, closed], [1, false])
    go(true)
    await completing
    await until(() => closed)
    assert.deepEqual([only('release').length, freed.state], [2, 'released'])
  })
})
