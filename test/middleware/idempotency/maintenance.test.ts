import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { IdempotencyClaim } from '../../../lib/core/call/index.ts'
import { StoreGuard } from '../../../lib/core/store-guard/index.ts'
import { ClaimKeeper, HeldClaim } from '../../../lib/middleware/idempotency/claim-keeper.ts'
import { MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'
import { clockOf } from './faked-clock.ts'

const LEASE_MS = 60_000

function keeperOf(store: MemoryIdempotencyStore, leaseMs = LEASE_MS) {
  const logger = recordingLogger()
  const guard = new StoreGuard({ name: 'claims', logger, probeMs: 0 })
  const keeper = new ClaimKeeper({ store, guard, logger, claimLeaseMs: leaseMs, keepRecordsMs: 3_600_000 })
  const claim = async (id: string) => {
    const held = await keeper.claim({ id, owner: `req_${id}` }, 'fingerprint')
    assert.ok(held instanceof HeldClaim)
    return held
  }
  return { keeper, guard, claim, logger }
}

/** Some of its records can be neither completed nor freed, and for a while none can. */
class PoisonedStore extends MemoryIdempotencyStore {
  down = false
  /** Poisoned records that it was asked for. */
  asked = 0

  override async complete(claim: IdempotencyClaim, keepUntil: number): Promise<boolean> {
    this.#check(claim)
    return super.complete(claim, keepUntil)
  }

  override async release(claim: IdempotencyClaim): Promise<void> {
    this.#check(claim)
    return super.release(claim)
  }

  #check({ id }: IdempotencyClaim): void {
    const poisoned = id.startsWith('poisoned')
    if (poisoned) this.asked++
    if (this.down || poisoned) throw new Error('cannot be written')
  }
}

describe('claims whose completion was not confirmed', () => {
  it('are settled each by itself: one that cannot be delays neither the others nor new ones', async () => {
    const store = new PoisonedStore()
    // Asked again every 100 ms.
    const { keeper, guard, claim, logger } = keeperOf(store, 400)
    const poisoned = await claim('poisoned')
    const freed = await claim('poisoned too')
    const others = [await claim('a'), await claim('b')]
    store.down = true
    await assert.rejects(keeper.complete(poisoned))
    await keeper.release(freed)
    for (const each of others) await assert.rejects(keeper.complete(each))
    store.down = false
    await until(() => others.every(({ state }) => state === 'completed'), 'the others')
    assert.equal(poisoned.state, 'settling')

    const before = store.asked
    await until(() => store.asked >= before + 3, 'further tries')
    assert.equal(guard.away, false, 'it is no outage')
    assert.equal(guard.outages, 1)
    await claim('c')
    const told = logger.lines.filter(({ message }) => /cannot be settled/.test(message))
    const requests = told.map(({ fields }) => fields.requestId)
    assert.equal(new Set(requests).size, requests.length, 'told once each')
    assert.ok(requests.includes('req_poisoned'))
  })
})

/** Makes claims and does not say so, and takes its time to free them. */
class UnheardStore extends MemoryIdempotencyStore {
  down = true
  readonly freed: string[] = []
  mostAtOnce = 0
  #atOnce = 0

  override async claim(request: Parameters<MemoryIdempotencyStore['claim']>[0]) {
    const record = await super.claim(request)
    if (this.down) throw new Error('the answer was lost')
    return record
  }

  override async release(claim: IdempotencyClaim): Promise<void> {
    if (this.down) throw new Error('the store is down')
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#atOnce)
    await new Promise((resolve) => setTimeout(resolve, 100))
    await super.release(claim)
    this.freed.push(claim.id)
    this.#atOnce--
  }
}

describe('claims that a store made in an outage', () => {
  it('are freed many at a time when it is back, so that none waits for all others', async () => {
    const store = new UnheardStore()
    const { claim, guard } = keeperOf(store)
    const ids = Array.from({ length: 250 }, (_, i) => `key ${i}`)
    for (const id of ids) await assert.rejects(claim(id), { name: 'StoreAway' })
    store.down = false
    await until(() => store.freed.length === ids.length, 'all keys')
    assert.equal(guard.away, false)
    assert.equal(store.mostAtOnce, 100)
    assert.deepEqual(new Set(store.freed), new Set(ids))
    await claim(ids[0] as string)
  })
})

/** Has more to forget than it can, and takes its time. */
class EndlessStore extends MemoryIdempotencyStore {
  readonly #pass: (ms: number) => void
  readonly log: string[] = []

  constructor(pass: (ms: number) => void) {
    super()
    this.#pass = pass
  }

  override renew(...given: Parameters<MemoryIdempotencyStore['renew']>) {
    this.log.push('renew')
    return super.renew(...given)
  }

  override async prune(_now: number, limit: number): Promise<number> {
    this.log.push('prune')
    this.#pass(100)
    // A keeper that never stops fails the test, and does not hang it.
    return this.log.length > 1000 ? 0 : limit
  }
}

it('renewals do not wait for all that is to be forgotten after a long time away', async (t) => {
  const clock = clockOf(t)
  const store = new EndlessStore(clock.pass)
  const { keeper, claim } = keeperOf(store)
  const held = await claim('a')
  for (let round = 0; round < 3; round++) {
    store.log.length = 0
    clock.tick(LEASE_MS / 4)
    for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve))
    assert.equal(store.log[0], 'renew')
    const pruned = store.log.filter((operation) => operation === 'prune').length
    assert.ok(pruned >= 1 && pruned <= 11, `pruned ${pruned} times of 100 ms`)
    assert.ok(keeper.maySend(held))
    assert.equal(held.state, 'running')
  }
})

it('a clock that leaps beyond the leases costs the call that is just ending its key, and no other', async (t) => {
  const clock = clockOf(t)
  const { keeper, claim } = keeperOf(new MemoryIdempotencyStore())
  const [ending, other] = [await claim('a'), await claim('b')]
  const { now } = Date
  t.mock.method(Date, 'now', () => now() + LEASE_MS)
  assert.equal(keeper.maySend(ending), false)
  clock.tick(1)
  await settled()
  assert.equal(keeper.maySend(other), true)
})

it('a record that has expired is forgotten once a minute, however the clock is set', async (t) => {
  const clock = clockOf(t)
  const began = performance.now()
  const store = new MemoryIdempotencyStore()
  const pruned: number[] = []
  t.mock.method(store, 'prune', async (expiredBefore: number) => {
    assert.equal(Date.now() - expiredBefore, 3_600_000, 'the clock of another process may be behind')
    pruned.push(performance.now() - began)
    return 0
  })
  const pass = async (quarters: number) => {
    for (let i = 0; i < quarters; i++) {
      clock.tick(LEASE_MS / 4)
      await settled()
    }
  }
  await keeperOf(store).claim('a')
  await pass(6)
  assert.deepEqual(pruned, [15_000, 75_000])
  const { now } = Date
  for (const [times, by] of [-86_400_000, -30_000, 86_400_000].entries()) {
    t.mock.method(Date, 'now', () => now() + by)
    await pass(4)
    assert.equal(pruned.length, 3 + times, `set by ${by} ms`)
  }
  assert.deepEqual(pruned, [15_000, 75_000, 135_000, 195_000, 255_000])
})

/** Remembers how many claims were renewed at a time. */
class RenewingStore extends MemoryIdempotencyStore {
  readonly renewed: number[] = []

  override async renew(claims: readonly IdempotencyClaim[], leaseUntil: number): Promise<boolean[]> {
    this.renewed.push(claims.length)
    return super.renew(claims, leaseUntil)
  }
}

const settled = async () => {
  for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve))
}

describe('renewals', () => {
  it('are of 500 claims at a time', async (t) => {
    const clock = clockOf(t)
    const store = new RenewingStore()
    const { claim } = keeperOf(store)
    for (let i = 0; i < 1100; i++) await claim(`a${i}`)
    clock.tick(LEASE_MS / 4)
    await settled()
    assert.deepEqual(store.renewed, [500, 500, 100])
  })
})

/** Answers no release. */
class SilentStore extends MemoryIdempotencyStore {
  override release(): Promise<void> {
    return new Promise(() => {})
  }
}

it('an outage is logged once, and not for each claim that waits for its end', async () => {
  const { keeper, guard, claim, logger } = keeperOf(new SilentStore())
  const claims = [await claim('a'), await claim('b')]
  for (const each of claims) await keeper.release(each)
  assert.equal(guard.away, true)
  await keeper.close(600)
  const logged = logger.lines.map(({ message }) => message)
  assert.deepEqual(
    logged.filter((message) => message === 'store is away'),
    ['store is away'],
  )
  assert.deepEqual(
    logged.filter((message) => message.endsWith('at the end')),
    claims.map(() => 'idempotency: a claim is not settled at the end'),
  )
})
