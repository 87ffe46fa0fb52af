import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import fc from 'fast-check'
import type { Demand } from '../../lib/middleware/rate-limit/index.ts'
import { demand, limit } from '../middleware/rate-limit/demands.ts'
import { cleaningUp } from '../support/clean-up.ts'
import type { LimitStoreUnderTest } from './limit-counter.ts'

/** The contract of every limit store for slots, whatever it keeps them in. */
export function slotStoreContract(
  name: string,
  open: () => Promise<LimitStoreUnderTest>,
  options: { skip: string | false } = { skip: false },
): void {
  describe(`slots: ${name}`, options, () => {
    let opened: LimitStoreUnderTest
    let subjects = 0
    const fresh = () => `s${++subjects}`
    const take = async (subject: string, most: number): Promise<Demand | undefined> => {
      const asked = demand([limit('concurrency', subject, most)])
      const { refusedBy, waitMs } = await opened.store.admit(asked)
      if (refusedBy) assert.equal(waitMs, 1000)
      return refusedBy ? undefined : asked
    }
    const cleanUp = cleaningUp()
    before(async () => {
      opened = await open()
      cleanUp.after(() => opened.close())
    })

    it('takes up to the limit, and each slot again after its release', async () => {
      const subject = fresh()
      const first = (await take(subject, 2)) as Demand
      assert.ok(await take(subject, 2))
      assert.equal(await take(subject, 2), undefined)
      opened.store.release(first)
      await settled()
      assert.ok(await take(subject, 2))
      assert.equal(await take(subject, 2), undefined)
    })

    it('releases a slot once, for any number of releases', async () => {
      const subject = fresh()
      const first = (await take(subject, 2)) as Demand
      await take(subject, 2)
      for (let i = 0; i < 3; i++) await opened.store.release(first)
      await opened.store.release(demand([limit('concurrency', subject, 2)]))
      await settled()
      assert.ok(await take(subject, 2))
      assert.equal(await take(subject, 2), undefined)
    })

    it('counts slots that are held without a request', async () => {
      const subject = fresh()
      const held = [0, 1, 2].map(() => demand([limit('concurrency', subject, 2)]))
      for (const each of held) opened.store.hold(each)
      await renewed(opened)
      assert.equal(await take(subject, 3), undefined)
      await Promise.all(held.slice(1).map((each) => opened.store.release(each)))
      await settled()
      assert.ok(await take(subject, 2))
      assert.equal(await take(subject, 2), undefined)
    })

    it('keeps a slot for the whole time of its call', async () => {
      const subject = fresh()
      const held = (await take(subject, 1)) as Demand
      for (let i = 0; i < 12; i++) {
        await opened.advance(7000)
        await renewed(opened)
        assert.equal(await take(subject, 1), undefined)
      }
      opened.store.release(held)
      await settled()
      assert.ok(await take(subject, 1))
    })

    it('takes from all levels or from none', async () => {
      const [user, ip] = [limit('concurrency', fresh(), 2), limit('concurrency', fresh(), 1)]
      const first = demand([user, ip])
      assert.equal((await opened.store.admit(first)).refusedBy, undefined)
      assert.deepEqual((await opened.store.admit(demand([user, ip]))).refusedBy, ip)
      assert.equal((await opened.store.admit(demand([user]))).refusedBy, undefined)
      opened.store.release(first)
      await settled()
      assert.equal((await opened.store.admit(demand([user, ip]))).refusedBy, undefined)
    })

    it('has the right count after any interleaving of takes and releases', async () => {
      const step = fc.oneof(fc.constant('take' as const), fc.constant('hold' as const), fc.nat(9))
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
          const subject = fresh()
          const running: Demand[] = []
          for (const each of steps) {
            if (each === 'take') {
              const taken = await take(subject, 3)
              assert.equal(taken !== undefined, running.length < 3)
              if (taken) running.push(taken)
            } else if (each === 'hold') {
              const held = demand([limit('concurrency', subject, 3)])
              opened.store.hold(held)
              await renewed(opened)
              running.push(held)
            } else {
              const [gone] = running.splice(each, 1)
              if (gone) await opened.store.release(gone)
              await settled()
            }
          }
          await Promise.all(running.map((each) => opened.store.release(each)))
          await settled()
          for (let i = 0; i < 3; i++) assert.ok(await take(subject, 3))
          assert.equal(await take(subject, 3), undefined)
        }),
        { numRuns: 20 },
      )
    })
  })
}

/** A release goes out with the present turn of the event loop, ahead of whatever is asked after it. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

/** Lets a store that renews leases do so. */
async function renewed({ renew }: LimitStoreUnderTest): Promise<void> {
  await renew?.()
}
