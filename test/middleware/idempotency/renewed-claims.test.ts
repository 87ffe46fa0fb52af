import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { IdempotencyClaim } from '../../../lib/core/call/index.ts'
import { StoreGuard } from '../../../lib/core/store-guard/index.ts'
import { ClaimKeeper } from '../../../lib/middleware/idempotency/claim-keeper.ts'
import { HeldClaim, momentNow } from '../../../lib/middleware/idempotency/held-claim.ts'
import { HeldClaims } from '../../../lib/middleware/idempotency/held-claims.ts'
import { MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { RecordPruner } from '../../../lib/middleware/idempotency/record-pruner.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { clockOf } from './faked-clock.ts'

const LEASE_MS = 60_000

/** Held claims, and a store that answers a renewal as the test says: by the ids of the claims. */
function held(
  t: TestContext,
  renew: (ids: string[]) => readonly (boolean | undefined)[],
  { rejectsAlone = true } = {},
) {
  const clock = clockOf(t)
  const logger = recordingLogger()
  const asked: string[][] = []
  const until: number[] = []
  const lost: string[] = []
  const store = new MemoryIdempotencyStore()
  t.mock.method(store, 'renew', async (claims: readonly IdempotencyClaim[], leaseUntil: number) => {
    const ids = claims.map(({ id }) => id)
    asked.push(ids)
    until.push(leaseUntil - Date.now())
    return renew(ids)
  })
  const guard = new StoreGuard({ name: 'claims', logger, rejectsAlone, probeMs: 0 })
  const claims = new HeldClaims({ store, guard, leaseMs: LEASE_MS, onLost: ({ id }) => void lost.push(id) })
  const add = (id: string) => {
    const claim = new HeldClaim({ id, owner: id }, 1000, momentNow())
    claims.add(claim)
    return claim
  }
  return { claims, add, asked, until, lost, clock, guard }
}

const yes = (ids: string[]) => ids.map(() => true)

describe('claims that are renewed together', () => {
  for (const [count, sizes] of [
    [0, []],
    [1, [1]],
    [500, [500]],
    [501, [500, 1]],
    [1001, [500, 500, 1]],
  ] as const)
    it(`are ${count} in ${sizes.length} operations, each of them once`, async (t) => {
      const { claims, add, asked, until } = held(t, yes)
      const ids = Array.from({ length: count }, (_, i) => add(`c-${i}`).id)
      await claims.renew()
      assert.deepEqual(
        asked.map(({ length }) => length),
        sizes,
      )
      assert.deepEqual(asked.flat(), ids)
      assert.deepEqual(new Set(until), new Set(count > 0 ? [LEASE_MS] : []))
    })

  for (const count of [2, 3, 7, 8])
    it(`are renewed all but one of ${count} that cannot be, in halves`, async (t) => {
      for (let broken = 0; broken < count; broken++) {
        const { claims, add, asked, clock } = held(t, (ids) => {
          if (ids.includes(`c-${broken}`)) throw new Error(`no ${broken}`)
          return yes(ids)
        })
        const all = Array.from({ length: count }, (_, i) => add(`c-${i}`))
        clock.tick(1000)
        await assert.rejects(claims.renew(), { name: 'StoreAway', cause: new Error(`no ${broken}`) })
        assert.deepEqual(
          all.map(({ age }) => age),
          all.map((_, i) => (i === broken ? 1000 : 0)),
        )
        const alone = asked.filter((ids) => ids.includes(`c-${broken}`)).map(({ length }) => length)
        assert.equal(alone[0], count)
        assert.equal(alone.at(-1), 1)
        assert.equal(alone.filter((length) => length === 1).length, 1, 'it is asked for alone once')
        for (const [i, length] of alone.slice(1).entries())
          assert.ok(length === Math.ceil(alone[i]! / 2) || length === Math.floor(alone[i]! / 2))
        assert.equal(claims.size, count)
        t.mock.timers.reset()
        t.mock.restoreAll()
      }
    })

  it('are not asked for in halves while the store is away', async (t) => {
    const { claims, add, asked, guard } = held(
      t,
      () => {
        throw new Error('away')
      },
      { rejectsAlone: false },
    )
    for (const id of ['a', 'b', 'c', 'd']) add(id)
    await assert.rejects(claims.renew(), { name: 'StoreAway' })
    assert.equal(guard.away, true)
    assert.deepEqual(asked, [['a', 'b', 'c', 'd']])
  })

  /** What the store answers, the state of the claim, and whether it is then confirmed, held and told as lost. */
  for (const [answer, state, confirmed, stays, told] of [
    [true, 'running', true, true, false],
    [false, 'running', false, false, true],
    [undefined, 'running', false, true, false],
    [true, 'settling', true, true, false],
    [false, 'settling', false, true, false],
    [undefined, 'settling', false, true, false],
    [true, 'completed', false, false, false],
    [false, 'completed', false, false, false],
    [true, 'lost', false, false, false],
    [true, 'released', false, true, false],
  ] as const)
    it(`${state} and answered with ${answer}: ${confirmed ? '' : 'not '}renewed, ${stays ? '' : 'not '}held, ${told ? '' : 'not '}lost`, async (t) => {
      const { claims, add, lost, clock } = held(t, (ids) => ids.map(() => answer))
      const claim = add('a')
      claim.state = state
      clock.tick(1000)
      await claims.renew()
      assert.deepEqual([claim.age === 0, claims.has(claim), lost], [confirmed, stays, told ? ['a'] : []])
    })

  it('are confirmed as of when that was asked for, and not if they ended meanwhile', async (t) => {
    const { claims, add, lost, clock } = held(t, (ids) => {
      clock.tick(100)
      claims.delete(gone)
      return ids.map((id) => id !== 'gone')
    })
    const [kept, gone] = [add('kept'), add('gone')]
    clock.tick(1000)
    await claims.renew()
    assert.deepEqual([kept.age, gone.age, lost], [100, 1100, []])
  })
})

describe('records that are over', () => {
  function pruner(t: TestContext, prune: (limit: number) => number | Promise<number>) {
    const clock = clockOf(t)
    const asked: [now: number, limit: number][] = []
    const store = new MemoryIdempotencyStore()
    t.mock.method(store, 'prune', async (now: number, limit: number) => {
      asked.push([now, limit])
      return prune(limit)
    })
    const guard = new StoreGuard({ name: 'claims', logger: recordingLogger(), probeMs: 0 })
    return { pruner: new RecordPruner(store, guard), asked, clock }
  }

  it('for an hour are forgotten once a minute', async (t) => {
    const { pruner: records, asked, clock } = pruner(t, () => 0)
    await records.prune(1000)
    assert.deepEqual(asked, [[Date.now() - 3_600_000, 500]])
    clock.tick(59_999)
    await records.prune(1000)
    assert.equal(asked.length, 1)
    clock.tick(1)
    await records.prune(1000)
    assert.equal(asked.length, 2)
  })

  it('are forgotten in slices, until one is not full', async (t) => {
    const counts = [500, 500, 499, 500]
    const { pruner: records, asked } = pruner(t, () => counts.shift() ?? 0)
    await records.prune(1000)
    assert.equal(asked.length, 3)
    await records.prune(1000)
    assert.equal(asked.length, 3)
  })

  it('are forgotten for so long at a time, and the rest with the next renewal', async (t) => {
    const {
      pruner: records,
      asked,
      clock,
    } = pruner(t, (limit) => {
      clock.tick(100)
      return limit
    })
    await records.prune(300)
    assert.equal(asked.length, 3)
    await records.prune(100)
    assert.equal(asked.length, 4)
    await records.prune(0)
    assert.equal(asked.length, 4)
  })

  it('are asked for again where that has failed', async (t) => {
    let fails = true
    const { pruner: records, asked } = pruner(t, () => {
      if (fails) throw new Error('away')
      return 0
    })
    await assert.rejects(records.prune(1000))
    fails = false
    await records.prune(1000)
    assert.equal(asked.length, 2)
  })
})

describe('a keeper of claims', () => {
  function keeperOf(t: TestContext, leaseMs: number) {
    const clock = clockOf(t)
    const store = new MemoryIdempotencyStore()
    const logger = recordingLogger()
    const guard = new StoreGuard({ name: 'claims', logger, rejectsAlone: true, probeMs: 0 })
    const keeper = new ClaimKeeper({ store, guard, logger, leaseMs, keepMs: 1000 })
    const pass = async (ms: number) => {
      clock.tick(ms)
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    }
    return { store, keeper, pass, logger, clock }
  }

  for (const [leaseMs, retryMs] of [
    [60_000, 1000],
    [4000, 1000],
    [2000, 500],
    [400, 100],
  ] as const)
    it(`with a lease of ${leaseMs} ms tries again after ${retryMs} ms what one store refuses`, async (t) => {
      const { store, keeper, pass, logger } = keeperOf(t, leaseMs)
      const renew = t.mock.method(store, 'renew', async () => Promise.reject(new Error('no such column')))
      await keeper.claim({ id: 'a', owner: 'a' }, 'f')
      await pass(leaseMs / 4 - 1)
      assert.equal(renew.mock.callCount(), 0)
      await pass(1)
      assert.equal(renew.mock.callCount(), 1)
      await pass(retryMs - 1)
      assert.equal(renew.mock.callCount(), 1)
      await pass(1)
      assert.equal(renew.mock.callCount(), 2)
      assert.deepEqual(
        [...new Set(logger.lines.map(({ message }) => message))],
        ['idempotency: maintenance failed'],
      )
    })

  for (const [leaseMs, slices] of [
    [60_000, 10],
    [8000, 10],
    [4000, 5],
    [800, 1],
  ] as const)
    it(`with a lease of ${leaseMs} ms forgets for no longer than ${slices * 100} ms at a time`, async (t) => {
      const { store, keeper, pass, clock } = keeperOf(t, leaseMs)
      const prune = t.mock.method(store, 'prune', async (_now: number, limit: number) => {
        clock.pass(100)
        return limit
      })
      await keeper.claim({ id: 'a', owner: 'a' }, 'f')
      await pass(leaseMs / 4)
      assert.equal(prune.mock.callCount(), slices)
    })
})
