import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import type { Demand } from '../../../lib/middleware/rate-limit/index.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { demand, limit } from './demands.ts'
import { LEASE_MS, RedisClock } from './redis-clock.ts'

describe('slots of several processes on one Redis', { skip: WITHOUT_REDIS }, () => {
  let clock: RedisClock
  const cleanUp = cleaningUp()
  before(async () => {
    clock = new RedisClock(await startRedis())
    cleanUp.after(() => clock.close())
  })

  it('gives the slots of a killed process back when their leases end, and not before', async () => {
    const [killed, living] = [clock.open(), clock.open()]
    const slot = limit('concurrency', 'killed', 2)
    await killed.store.admit(demand([slot]))
    await killed.store.admit(demand([slot]))
    killed.crash()
    await clock.advance(LEASE_MS - 5000)
    assert.ok((await living.store.admit(demand([slot]))).refusedBy)
    await clock.advance(5000)
    assert.equal((await living.store.admit(demand([slot]))).refusedBy, undefined)
  })

  it('takes the slots of a process that could not renew again when it can', async () => {
    const { store } = clock.open()
    const slot = limit('concurrency', 'paused', 1)
    const held = demand([slot])
    await store.admit(held)
    await clock.advance(LEASE_MS * 2)
    assert.deepEqual(await clock.slots('paused'), [])
    await clock.renew()
    assert.deepEqual(await clock.slots('paused'), [held.id])
    store.release(held)
    await clock.settled()
    assert.deepEqual(await clock.slots('paused'), [])
  })

  it('a process with shorter leases neither frees nor forgets the slots of another', async () => {
    const SHORT_MS = 1000
    const [long, killed, short] = [clock.open(), clock.open(SHORT_MS), clock.open(SHORT_MS)]
    const slot = limit('concurrency', 'mixed', 2)
    const ask = async () => (await short.store.admit(demand([slot]))).refusedBy === undefined
    await long.store.admit(demand([slot]))
    await killed.store.admit(demand([slot]))
    killed.crash()
    assert.equal(await ask(), false)
    await clock.advance(SHORT_MS)
    assert.deepEqual([await ask(), await ask()], [true, false], 'one runs on')
    assert.ok((await clock.lifeOf('mixed')) >= LEASE_MS - SHORT_MS - 5000)
    await clock.renew()
    assert.ok((await clock.lifeOf('mixed')) >= LEASE_MS - SHORT_MS - 5000)
    for (const { crash } of [long, short]) crash()
  })

  it('frees no slot by a renewal that comes while calls are being given theirs', async () => {
    const { store } = clock.open()
    const slot = limit('concurrency', 'under-way', 100)
    // From the first slot on there are renewals.
    const held = [demand([slot])]
    for (const each of held) await store.admit(each)
    for (let round = 0; round < 9; round++) {
      const asked = Array.from({ length: 10 }, () => demand([slot]))
      held.push(...asked)
      let isOver = false
      const admitted = Promise.all(asked.map((each) => store.admit(each))).finally(() => {
        isOver = true
      })
      const renewals: Promise<void>[] = []
      while (!isOver) {
        renewals.push(clock.renew())
        await nextTurn()
      }
      for (const { refusedBy } of await admitted) assert.equal(refusedBy, undefined)
      await Promise.all(renewals)
      assert.deepEqual(new Set(await clock.slots('under-way')), new Set(held.map(({ id }) => id)))
    }
  })

  it('keeps thousands of slots of one account alive', async () => {
    const { store } = clock.open()
    const slot = limit('concurrency', 'thousands', 5000)
    const held = Array.from({ length: 5000 }, () => demand([slot]))
    const verdicts = await Promise.all(held.map((each) => store.admit(each)))
    assert.equal(verdicts.filter(({ refusedBy }) => refusedBy).length, 0)
    await clock.advance(LEASE_MS - 5000)
    await clock.renew()
    await clock.advance(LEASE_MS - 5000)
    assert.equal((await clock.slots('thousands')).length, 5000)
    for (const each of held.slice(0, 2500)) store.release(each)
    await clock.settled()
    assert.deepEqual(new Set(await clock.slots('thousands')), new Set(held.slice(2500).map(({ id }) => id)))
  })

  it('keeps the count right over any interleaving of acquire, renew, release, expiry and crash', async () => {
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.record({ op: fc.constant('acquire' as const), at: fc.nat(2) }) },
      { weight: 3, arbitrary: fc.record({ op: fc.constant('release' as const), at: fc.nat(9) }) },
      { weight: 2, arbitrary: fc.record({ op: fc.constant('renew' as const), at: fc.constant(0) }) },
      {
        weight: 3,
        arbitrary: fc.record({
          op: fc.constant('advance' as const),
          at: fc.constantFrom(5000, 10_000, 25_000),
        }),
      },
      { weight: 1, arbitrary: fc.record({ op: fc.constant('crash' as const), at: fc.nat(2) }) },
    )
    let runs = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const subject = `model-${++runs}`
        const slot = limit('concurrency', subject, 4)
        const processes = [clock.open(), clock.open(), clock.open()]
        const running: { held: Demand; process: (typeof processes)[number] }[] = []
        const leases = new Map<string, number>()
        let now = 0
        const counted = () => [...leases].filter(([, end]) => end > now).map(([id]) => id)
        for (const { op, at } of steps) {
          if (op === 'acquire') {
            const process = processes[at]!
            const held = demand([slot])
            const free = counted().length < 4
            assert.equal((await process.store.admit(held)).refusedBy === undefined, free)
            if (!free) continue
            running.push({ held, process })
            leases.set(held.id, now + LEASE_MS)
          } else if (op === 'release') {
            const [gone] = running.splice(at, 1)
            if (!gone) continue
            gone.process.store.release(gone.held)
            leases.delete(gone.held.id)
            await clock.settled()
          } else if (op === 'renew') {
            await clock.renew()
            for (const { held } of running) leases.set(held.id, now + LEASE_MS)
          } else if (op === 'advance') {
            now += at
            await clock.advance(at)
          } else {
            const process = processes[at]!
            process.crash()
            processes[at] = clock.open()
            // Its leases stay until they end; nobody renews or releases them any more.
            for (let i = running.length - 1; i >= 0; i--)
              if (running[i]!.process === process) running.splice(i, 1)
          }
          assert.deepEqual(new Set(await clock.slots(subject)), new Set(counted()))
        }
        for (const process of processes) process.crash()
      }),
      { numRuns: 15 },
    )
  })
})
