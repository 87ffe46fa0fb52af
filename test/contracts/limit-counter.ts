import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import fc from 'fast-check'
import type { Limit, LimitStore, Verdict } from '../../lib/middleware/rate-limit/index.ts'
import { demand, limit, WINDOW_MS } from '../middleware/rate-limit/demands.ts'
import { cleaningUp } from '../support/clean-up.ts'

/** A store on a clock of the test's. */
export interface LimitStoreUnderTest {
  readonly store: LimitStore
  /** Lets time pass for the store. */
  advance(ms: number): Promise<void> | void
  /** Lets the store renew the leases it has; not there where it has none. */
  renew?(): Promise<void>
  close(): Promise<void> | void
}

/** Real time passes too where the store is not in this process. */
export const about = (actual: number, expected: number) =>
  assert.ok(actual <= expected && actual > expected - 2000, `${actual} should be about ${expected}`)

/** The contract of every limit store for counted limits, whatever it keeps them in. */
export function limitCounterContract(
  name: string,
  open: () => Promise<LimitStoreUnderTest>,
  options: { skip: string | false } = { skip: false },
): void {
  describe(`limit counters: ${name}`, options, () => {
    let opened: LimitStoreUnderTest
    let subjects = 0
    const fresh = () => `s${++subjects}`
    const ask = async (limits: readonly Limit[], sender?: string): Promise<Verdict> =>
      opened.store.admit(demand(limits, sender === undefined ? {} : { sender }))
    const admitted = async (limits: readonly Limit[], sender?: string) =>
      (await ask(limits, sender)).refusedBy === undefined
    const cleanUp = cleaningUp()
    before(async () => {
      opened = await open()
      cleanUp.after(() => opened.close())
    })

    it('admits up to the limit, and refuses what is above it', async () => {
      const rpm = limit('rpm', fresh(), 3)
      for (const used of [1, 2, 3]) {
        const verdict = await ask([rpm])
        assert.equal(verdict.refusedBy, undefined)
        assert.equal(verdict.counts[0]?.used, used)
        about(verdict.counts[0]?.resetMs as number, WINDOW_MS)
      }
      const refused = await ask([rpm])
      assert.deepEqual(refused.refusedBy, rpm)
      assert.equal(refused.counts[0]?.used, 3)
      about(refused.waitMs, WINDOW_MS)
    })

    it('counts nothing for a refused request', async () => {
      const subject = fresh()
      assert.ok(await admitted([limit('tpm', subject, 100, 60)]))
      for (let i = 0; i < 5; i++) assert.ok(!(await admitted([limit('tpm', subject, 100, 41)])))
      const fits = await ask([limit('tpm', subject, 100, 40)])
      assert.equal(fits.refusedBy, undefined)
      assert.equal(fits.counts[0]?.used, 100)
    })

    for (const refusing of [0, 1, 2, 3, 4]) {
      it(`changes no other limit if number ${refusing + 1} of five refuses`, async () => {
        const subject = fresh()
        const kinds = ['rpm', 'tpm', 'rpm', 'tpm', 'concurrency'] as const
        const limits = kinds.map((kind, i) => limit(kind, `${subject}-${i}`, 1))
        const full = limits[refusing] as Limit
        await ask([full])
        const verdict = await ask(limits)
        assert.deepEqual(verdict.refusedBy, full)
        for (const other of limits) if (other !== full) assert.ok(await admitted([other]), other.key)
      })
    }

    it('begins a window with its first hit and ends it a window later', async () => {
      const rpm = limit('rpm', fresh(), 2)
      await ask([rpm])
      await opened.advance(WINDOW_MS - 10_000)
      await ask([rpm])
      const refused = await ask([rpm])
      about(refused.waitMs, 10_000)
      await opened.advance(refused.waitMs)
      const verdict = await ask([rpm])
      assert.equal(verdict.counts[0]?.used, 1)
      about(verdict.counts[0]?.resetMs as number, WINDOW_MS)
    })

    it('returns the limit with the longest wait if several refuse', async () => {
      const subject = fresh()
      const early = limit('rpm', subject, 1)
      const late = limit('tpm', subject, 1)
      await ask([early])
      await opened.advance(5000)
      await ask([late])
      const refused = await ask([early, late])
      assert.deepEqual(refused.refusedBy, late)
      about(refused.waitMs, WINDOW_MS)
    })

    it('decides concurrent requests as if they arrived one after the other', async () => {
      const subject = fresh()
      const limits = [
        limit('rpm', subject, 40),
        limit('tpm', subject, 350, 10),
        limit('concurrency', subject, 30),
      ]
      const verdicts = await Promise.all(Array.from({ length: 100 }, () => ask(limits)))
      assert.equal(verdicts.filter(({ refusedBy }) => !refusedBy).length, 30)
      const next = await ask(limits.slice(0, 2))
      assert.deepEqual(
        next.counts.map(({ used }) => used),
        [31, 310],
      )
    })

    it('agrees with a plain model for any sequence of demands and pauses', async () => {
      const step = fc.oneof(
        { weight: 4, arbitrary: fc.record({ a: fc.nat(3), b: fc.nat(3), c: fc.nat(3) }) },
        { weight: 1, arbitrary: fc.constantFrom(10_000, 25_000, 60_000) },
      )
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
          const subject = fresh()
          const model = new Map<string, { used: number; end: number }>()
          let now = 0
          for (const each of steps) {
            if (typeof each === 'number') {
              now += each
              await opened.advance(each)
              continue
            }
            const limits = Object.entries(each)
              .filter(([, cost]) => cost > 0)
              .map(([name, cost]) => limit('tpm', `${subject}-${name}`, 4, cost))
            for (const [key, { end }] of model) if (end <= now) model.delete(key)
            const fits = limits.every(({ key, cost, max }) => (model.get(key)?.used ?? 0) + cost <= max)
            if (fits)
              for (const { key, cost } of limits) {
                const { used = 0, end = now + WINDOW_MS } = model.get(key) ?? {}
                model.set(key, { used: used + cost, end })
              }
            const verdict = await ask(limits)
            assert.equal(verdict.refusedBy === undefined, fits)
            assert.deepEqual(
              verdict.counts.map(({ used }) => used),
              limits.map(({ key }) => model.get(key)?.used ?? 0),
            )
          }
        }),
        { numRuns: 20 },
      )
    })
  })
}
