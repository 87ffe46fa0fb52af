import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Limit, Verdict } from '../../lib/middleware/rate-limit/index.ts'
import { demand, limit } from '../middleware/rate-limit/demands.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { about, type LimitStoreUnderTest } from './limit-counter.ts'

/** What every limit store that prolongs waits must do about senders that do, or do not, honour theirs. */
export function limitWaitContract(
  name: string,
  open: () => Promise<LimitStoreUnderTest>,
  options: { skip: string | false } = { skip: false },
): void {
  describe(`waits of senders: ${name}`, options, () => {
    let opened: LimitStoreUnderTest
    let subjects = 0
    const fresh = () => `s${++subjects}`
    const ask = async (limits: readonly Limit[], sender?: string): Promise<Verdict> =>
      opened.store.admit(demand(limits, sender === undefined ? {} : { sender }))
    /** A call of the sender ends, and the store has been told. */
    const end = async (sender: string) => {
      opened.store.ended?.(sender)
      await new Promise((resolve) => setImmediate(resolve))
    }
    const admitted = async (limits: readonly Limit[], sender?: string) =>
      (await ask(limits, sender)).refusedBy === undefined
    const cleanUp = cleaningUp()
    before(async () => {
      opened = await open()
      cleanUp.after(() => opened.close())
    })

    it('does not prolong the wait of a sender that was on its way or that waits', async () => {
      const subject = fresh()
      const rpm = limit('rpm', subject, 1)
      await ask([rpm], subject)
      const { waitMs } = await ask([rpm], subject)
      await opened.advance(900)
      about((await ask([rpm], subject)).waitMs, waitMs - 900)
      await opened.advance(waitMs - 900)
      assert.ok(await admitted([rpm], subject))
    })

    it('tells the true wait of a long window, prolongs it in its last minute alone, and forgets it with a higher limit', async () => {
      const subject = fresh()
      const windowMs = 31 * 86_400_000
      const HOUR = 3_600_000
      const askFor = async (max: number): Promise<Verdict> =>
        opened.store.admit(demand([limit('rpm', subject, max)], { sender: subject, windowMs }))
      await askFor(1)
      await opened.advance(HOUR)
      about((await askFor(1)).waitMs, windowMs - HOUR)
      await opened.advance(HOUR)
      about((await askFor(1)).waitMs, windowMs - 2 * HOUR)
      assert.equal((await askFor(2)).refusedBy, undefined)
      about((await askFor(2)).waitMs, windowMs - 2 * HOUR)
      await opened.advance(windowMs - 2 * HOUR - 20_000)
      about((await askFor(2)).waitMs, 21_000)
      await opened.advance(20_500)
      assert.ok((await askFor(2)).refusedBy)
      await opened.advance(1000)
      assert.equal((await askFor(2)).refusedBy, undefined)
    })

    it('ends the wait of a sender that came early with a raised limit, not with a lowered one', async () => {
      const subject = fresh()
      const sender = subject
      const beside = limit('rpm', fresh(), 1)
      const rpm = (max: number) => limit('rpm', subject, max)
      await ask([rpm(2)], sender)
      await ask([rpm(2)], sender)
      await ask([beside], beside.key)
      await ask([beside], beside.key)
      for (let i = 0; i < 3; i++) await ask([rpm(2)], sender)
      await opened.advance(5000)
      about((await ask([rpm(2)], sender)).waitMs, 56_000)
      about((await ask([rpm(1)], sender)).waitMs, 57_000)
      assert.ok(await admitted([rpm(3)], sender))
      const refused = await ask([rpm(3)], sender)
      assert.deepEqual(refused.refusedBy, rpm(3))
      about(refused.waitMs, 55_000)
      assert.ok(!(await admitted([beside], beside.key)))
    })

    it('prolongs the wait by a second for each request sent before its time', async () => {
      const subject = fresh()
      const rpm = limit('rpm', subject, 1)
      await ask([rpm], subject)
      await opened.advance(20_000)
      about((await ask([rpm], subject)).waitMs, 40_000)
      await opened.advance(10_000)
      about((await ask([rpm], subject)).waitMs, 31_000)
      about((await ask([rpm], subject)).waitMs, 32_000)
      await opened.advance(30_500)
      // The window is over, the wait is not.
      const refused = await ask([rpm], subject)
      assert.deepEqual(refused.refusedBy, rpm)
      about(refused.waitMs, 1500)
      await opened.advance(1500)
      assert.ok(await admitted([rpm], subject))
    })

    it('pardons one early request for each call that ended during the wait, and no more', async () => {
      const subject = fresh()
      const rpm = limit('rpm', subject, 1)
      await ask([rpm], subject)
      await ask([rpm], subject)
      await opened.advance(20_000)
      for (let i = 0; i < 3; i++) await end(subject)
      for (let i = 0; i < 3; i++) about((await ask([rpm], subject)).waitMs, 40_000)
      for (const longer of [1, 2, 3, 4]) {
        const { waitMs } = await ask([rpm], subject)
        about(waitMs, 40_000 + longer * 1000)
        assert.ok(waitMs > 39_000 + longer * 1000, `${waitMs} after ${longer}`)
      }
      await end(subject)
      about((await ask([rpm], subject)).waitMs, 44_000)
      await opened.advance(44_000)
      assert.ok(await admitted([rpm], subject))
    })

    it('pardons nothing for calls that ended before the wait or while it began, or of another sender', async () => {
      const subject = fresh()
      const rpm = limit('rpm', subject, 1)
      await ask([rpm], subject)
      await end(subject)
      await ask([rpm], subject)
      await opened.advance(400)
      await end(subject)
      await opened.advance(19_600)
      await end(fresh())
      for (let i = 0; i < 3; i++) await ask([rpm], subject)
      const { waitMs } = await ask([rpm], subject)
      about(waitMs, 44_000)
      assert.ok(waitMs > 43_000, `${waitMs}`)
    })

    it('keeps no pardon for the next wait', async () => {
      const subject = fresh()
      const rpm = limit('rpm', subject, 1)
      await ask([rpm], subject)
      await ask([rpm], subject)
      await opened.advance(10_000)
      for (let i = 0; i < 3; i++) await end(subject)
      await opened.advance(50_000)
      assert.ok(await admitted([rpm], subject))
      await ask([rpm], subject)
      await opened.advance(20_000)
      for (let i = 0; i < 3; i++) await ask([rpm], subject)
      const { waitMs } = await ask([rpm], subject)
      about(waitMs, 44_000)
      assert.ok(waitMs > 43_000, `${waitMs}`)
    })

    it('pardons nothing once whoever made the call that ended was admitted again', async () => {
      const subject = fresh()
      const large = limit('tpm', subject, 100, 60)
      await ask([limit('tpm', subject, 100, 50)], subject)
      assert.ok(!(await admitted([large], subject)))
      await opened.advance(20_000)
      for (let i = 0; i < 3; i++) await end(subject)
      for (let i = 0; i < 3; i++) assert.ok(await admitted([limit('tpm', subject, 100, 10)], subject))
      for (let i = 0; i < 3; i++) await ask([large], subject)
      const { waitMs } = await ask([large], subject)
      about(waitMs, 44_000)
      assert.ok(waitMs > 43_000, `${waitMs}`)
    })

    it('does not prolong the wait of a sender that comes back for a slot when it was told to', async () => {
      const subject = fresh()
      const rpm = limit('rpm', subject, 2)
      const slot = limit('concurrency', subject, 1)
      await ask([rpm, slot], subject)
      const refused = await ask([rpm, slot], subject)
      assert.deepEqual([refused.refusedBy, refused.waitMs], [slot, 1000])
      await opened.advance(900)
      assert.ok(await admitted([rpm], subject))
      await ask([rpm], subject)
      await opened.advance(1050)
      for (let i = 0; i < 4; i++) about((await ask([rpm], subject)).waitMs, 58_050)
      await opened.advance(100)
      for (let i = 0; i < 3; i++) await ask([rpm], subject)
      const { waitMs } = await ask([rpm], subject)
      about(waitMs, 61_950)
      assert.ok(waitMs > 58_950 && waitMs <= 60_000, `${waitMs}`)
    })

    it('lets one of several callers of a sender through who all wait as they were told', async () => {
      const subject = fresh()
      const rpm = limit('rpm', subject, 1)
      await ask([rpm], subject)
      const callers = [1, 2, 3].map((i) => ({ at: i * 5000 }))
      let now = 0
      for (let asked = 0; asked < 9; asked++) {
        const [next] = callers.sort((one, other) => one.at - other.at)
        await opened.advance((next?.at as number) - now)
        now = next?.at as number
        const { refusedBy, waitMs } = await ask([rpm], subject)
        if (!refusedBy) return
        if (next) next.at = now + Math.ceil(waitMs / 1000) * 1000
      }
      assert.fail('they keep each other out')
    })

    it('never tells a wait over 60 seconds', async () => {
      const subject = fresh()
      const rpm = limit('rpm', subject, 1)
      for (let i = 0; i < 2; i++) await ask([rpm], subject)
      await opened.advance(1500)
      for (let i = 0; i < 100; i++) assert.ok((await ask([rpm], subject)).waitMs <= 60_000)
    })

    it('makes a sender wait for the limit that refused it, and for no other', async () => {
      for (const kind of ['rpm', 'tpm'] as const) {
        const [user, ip] = [fresh(), fresh()]
        const own = limit(kind, user, 1)
        const shared = limit('rpm', ip, 1000)
        await ask([shared, own], ip)
        await ask([shared, own], ip)
        await opened.advance(2000)
        // It asks early, so that it waits whatever its limits have left.
        for (let i = 0; i < 40; i++) await ask([shared, own], ip)
        const other = limit(kind, fresh(), 1)
        assert.ok(await admitted([shared, other], ip), 'whoever shares another level with it')
        assert.ok(await admitted([shared], ip), 'where that limit does not apply')
        about((await ask([shared, other], ip)).waitMs, 60_000)
        await opened.advance(59_000)
      }
    })

    it("does not prolong anybody's wait but the sender's", async () => {
      const account = limit('rpm', fresh(), 1)
      const [patient, impatient] = [fresh(), fresh()]
      await ask([account], fresh())
      const { waitMs } = await ask([account], patient)
      await ask([account], impatient)
      await opened.advance(2000)
      for (let i = 0; i < 10; i++) await ask([account], impatient)
      await opened.advance(waitMs - 2000)
      assert.ok(!(await admitted([account], impatient)))
      assert.ok(await admitted([account], patient))
    })

    it('lets a small request of a sender through while a larger one of it waits', async () => {
      const subject = fresh()
      await ask([limit('tpm', subject, 100, 50)], subject)
      assert.ok(!(await admitted([limit('tpm', subject, 100, 60)], subject)))
      await opened.advance(5000)
      const small = await ask([limit('tpm', subject, 100, 10)], subject)
      assert.equal(small.refusedBy, undefined)
      about(small.waitMs, 55_000)
      assert.equal((await ask([limit('tpm', subject, 100, 10)])).waitMs, 0, 'another sender does not wait')
    })
  })
}
