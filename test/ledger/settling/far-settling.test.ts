import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { ROUND_TRIP_MS } from '../support/far-ledger.ts'
import { ACCOUNTS, FarWorld } from '../support/far-world.ts'

const account = fc.constantFrom(...ACCOUNTS)
/** Calls that end at the same time, and the time until the next do. */
const burst = fc.record({
  of: fc.array(account, { minLength: 1, maxLength: 6 }),
  ms: fc.integer({ min: 1, max: 60 }),
})

/** A round trip, the wait for a lock, a question who that is, another round trip, and all waits for a turn. */
const ONE_BATCH_MS = 4 * ROUND_TRIP_MS + 150
/** The same if the ledger never answers: others go around it, each account on its own, before its calls are refused. */
const GONE_AROUND_MS = 8 * ROUND_TRIP_MS

const calls = (ms: number, ...of: number[]) => ({
  op: 'calls' as const,
  burst: { of: of.map((i) => `account-${i}`), ms },
})
/** Once, the last charge that an account had apart from others was taken back, and the account stayed apart for good. */
const LAST_TAKEN_BACK = [
  calls(1, 0),
  { op: 'lock', account: 'account-0', how: 'timed' },
  calls(1, 0),
  calls(3, 3),
  calls(51, 6, 0),
  calls(5, 0),
  calls(19, 0),
  calls(57, 0),
  calls(60, 0),
  { op: 'lock', account: 'account-3', how: 'forever' },
  calls(52, 0),
  calls(52, 0),
  calls(55, 0),
  calls(4, 0),
  calls(1, 0),
  calls(12, 0),
  calls(4, 0),
  { op: 'unlock', account: 'account-0' },
  { op: 'lock', account: 'account-0', how: 'timed' },
  calls(27, 0),
  calls(4, 0),
  calls(17, 5),
  calls(57, 0),
  { op: 'lock', account: 'account-0', how: 'timed' },
  { op: 'lose', many: 1 },
  calls(6, 0),
  calls(2, 0),
  { op: 'unlock', account: 'account-0' },
  { op: 'unlock', account: 'account-0' },
  { op: 'revoke', which: 0 },
  calls(1, 0),
  calls(2, 6),
  calls(27, 0, 0),
  { op: 'revoke', which: 2 },
] as const

describe('charges on their way to a distant ledger', () => {
  it('wait for a part of a round trip, and then for one', async () => {
    const world = new FarWorld()
    await world.warm()
    // Each account ends a call every 100 ms.
    for (let i = 0; i < 400; i++) {
      await world.call(ACCOUNTS[i % ACCOUNTS.length] as string)
      await world.pass(100 / ACCOUNTS.length)
    }
    await world.pass(1000)
    const waited = world.calls.map(({ waitedMs }) => waitedMs).sort((one, other) => one - other)
    assert.equal(world.calls.length, 400)
    assert.ok((waited[200] as number) <= 1.15 * ROUND_TRIP_MS, `${waited[200]} ms`)
    assert.ok((waited[399] as number) <= 1.3 * ROUND_TRIP_MS, `${waited[399]} ms`)
    assert.deepEqual([world.ledger.mostUnderWay, world.ledger.mostOfOne <= 2], [5, true])
  })

  for (const [ms, most] of [
    [15, 1],
    [30, 3],
    [45, 4],
  ] as const)
    it(`are in at most ${most} operations at a time, to a ledger ${ms} ms away`, async () => {
      const world = new FarWorld()
      world.ledger.roundTripMs = ms
      await world.warm()
      for (let i = 0; i < 400; i++) {
        await world.call(ACCOUNTS[i % ACCOUNTS.length] as string)
        await world.pass(2)
      }
      await world.pass(1000)
      assert.deepEqual([world.calls.length, world.ledger.mostUnderWay], [400, most])
    })

  it('are in at most half of the operations for one account, and in more for two', async () => {
    for (const [accounts, most] of [
      [1, 2],
      [2, 3],
    ] as const) {
      const world = new FarWorld()
      await world.warm()
      for (let i = 0; i < 200; i++) {
        await world.call(ACCOUNTS[i % accounts] as string)
        await world.pass(3)
      }
      await world.pass(1000)
      const { mostOfOne, mostUnderWay } = world.ledger
      assert.deepEqual([world.calls.length, mostOfOne, mostUnderWay], [200, 2, most])
    }
  })

  it('are delayed by locked rows of one account no longer than those sent together with its own', async () => {
    const scenario = fc.record({
      bursts: fc.array(burst, { minLength: 60, maxLength: 90 }),
      locked: account,
      from: fc.integer({ min: 0, max: 20 }),
      bursting: fc.integer({ min: 1, max: 50 }),
      how: fc.constantFrom('timed' as const, 'forever' as const),
    })
    const runs = fc.asyncProperty(scenario, async ({ bursts, locked, from, bursting, how }) => {
      const world = new FarWorld()
      await world.warm()
      for (const [i, { of, ms }] of bursts.entries()) {
        if (i === from) world.ledger.locked.set(locked, how)
        if (i === from + bursting) world.ledger.unlock(locked)
        for (const each of of) await world.call(each)
        await world.pass(ms)
      }
      assert.equal(world.pool.away, false)
      world.ledger.unlock(locked)
      await world.pass(5000)
      assert.equal(world.pool.stats.outages, 0)
      assert.ok(
        world.refused.every((refused) => refused === locked),
        `refused: ${world.refused}`,
      )
      const others = world.calls.filter((call) => call.account !== locked)
      assert.ok(others.every(({ outcome }) => outcome === 'confirmed'))
      const longest = Math.max(...others.map(({ waitedMs }) => waitedMs))
      assert.ok(longest <= (how === 'timed' ? ONE_BATCH_MS : GONE_AROUND_MS), `${how}: ${longest} ms`)
      assert.ok(
        world.ledger.mostOfOne <= (how === 'timed' ? 2 : 4),
        `${world.ledger.mostOfOne} of one account`,
      )
      assert.deepEqual([world.pool.stats.queued, world.pool.stats.lockedAccounts], [0, 0])
      const made = ACCOUNTS.map((id) => 2 + world.calls.filter((call) => call.account === id).length)
      assert.deepEqual(await world.spent(), made)
      assert.deepEqual((await world.ledger.books.check()).violations, [])
    })
    await fc.assert(runs, { numRuns: 8, endOnFailure: true })
  })

  it('are each charged once or undone, after any losses, locks, refusals and interruptions', async () => {
    const step = fc.oneof(
      { weight: 20, arbitrary: fc.record({ op: fc.constant('calls' as const), burst }) },
      {
        weight: 3,
        arbitrary: fc.record({
          op: fc.constant('lock' as const),
          account,
          how: fc.constantFrom('timed' as const, 'forever' as const),
        }),
      },
      { weight: 4, arbitrary: fc.record({ op: fc.constant('unlock' as const), account }) },
      {
        weight: 2,
        arbitrary: fc.record({ op: fc.constant('lose' as const), many: fc.integer({ min: 1, max: 4 }) }),
      },
      { weight: 2, arbitrary: fc.record({ op: fc.constant('poison' as const), behind: fc.nat(5) }) },
      { weight: 1, arbitrary: fc.record({ op: fc.constant('heal' as const) }) },
      { weight: 1, arbitrary: fc.record({ op: fc.constant('cut' as const), ms: fc.nat(3000) }) },
      { weight: 4, arbitrary: fc.record({ op: fc.constant('revoke' as const), which: fc.nat(9) }) },
    )
    const runs = fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
      const world = new FarWorld()
      const { ledger, calls } = world
      await world.warm()
      for (const taken of steps) {
        if (taken.op === 'calls') {
          for (const each of taken.burst.of) await world.call(each)
          await world.pass(taken.burst.ms)
        } else if (taken.op === 'lock') ledger.locked.set(taken.account, taken.how)
        else if (taken.op === 'unlock') ledger.unlock(taken.account)
        else if (taken.op === 'lose') ledger.lost += taken.many
        else if (taken.op === 'poison')
          ledger.poison.add(`req-${2 * ACCOUNTS.length + calls.length + taken.behind}`)
        else if (taken.op === 'heal') ledger.poison.clear()
        else if (taken.op === 'cut') {
          ledger.isCut = true
          await world.pass(taken.ms)
          ledger.isCut = false
        } else {
          const call = calls.at(-1 - taken.which)
          if (!call) continue
          call.revoked = true
          call.reservation.revoke(null)
        }
      }
      ledger.poison.clear()
      for (const each of ACCOUNTS) ledger.unlock(each)
      await world.pass(100_000)
      const { queued, setAside, lockedAccounts } = world.pool.stats
      assert.deepEqual([queued, setAside, lockedAccounts, world.pool.away], [0, 0, 0, false])
      for (const { resolved, revoked } of calls) {
        assert.equal(resolved.at(-1), revoked ? 'voided' : 'confirmed')
        assert.ok(resolved.length === 1 || (revoked && resolved.length === 2), `${resolved}`)
      }
      const standing = ACCOUNTS.map(
        (id) => 2 + calls.filter((call) => call.account === id && !call.revoked).length,
      )
      assert.deepEqual(await world.spent(), standing)
      const closed = world.pool.close()
      await world.pass(3000)
      await closed
      const { leased, violations } = await ledger.books.check()
      assert.deepEqual([leased, violations], [0n, []])
    })
    await fc.assert(runs, { numRuns: 12, endOnFailure: true, examples: [[[...LAST_TAKEN_BACK]]] })
  })
})
