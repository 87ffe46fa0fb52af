import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Limit, Verdict } from '../../lib/middleware/rate-limit/index.ts'
import { demand, limit } from '../middleware/rate-limit/demands.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { about, type LimitStoreUnderTest } from './limit-counter.ts'

/** The contract of every limit store that prolongs waits, for senders that honour theirs and for those that do not. */
export function limitWaitContract(
  name: string,
  open: () => Promise<LimitStoreUnderTest>,
  options: { skip: string | false } = { skip: false },
): void {
  describe(`waits of senders: ${name}`, options, () => {
    let opened: LimitStoreUnderTest
    let subjects = 0
    const fresh = () => `w${++subjects}`
    const ask = async (limits: readonly Limit[], sender: string): Promise<Verdict> =>
      opened.store.admit(demand(limits, { sender }))
    const admitted = async (limits: readonly Limit[], sender: string) =>
      (await ask(limits, sender)).refusedBy === undefined
    const cleanUp = cleaningUp()
    before(async () => {
      opened = await open()
      cleanUp.after(() => opened.close())
    })

    it('does not prolong the wait of a sender whose request was already sent, or that waits', async () => {
      const subject = fresh()
      const rpm = limit('rpm', subject, 1)
      await ask([rpm], subject)
      const { waitMs } = await ask([rpm], subject)
      about(waitMs, 60_000)
      about((await ask([rpm], subject)).waitMs, 60_000)
      await opened.advance(60_000)
      assert.ok(await admitted([rpm], subject))
    })

    it('prolongs the wait by a second for each early request, and applies it after the window', async () => {
      const subject = fresh()
      const rpm = limit('rpm', subject, 1)
      await ask([rpm], subject)
      await opened.advance(20_000)
      about((await ask([rpm], subject)).waitMs, 40_000)
      await opened.advance(10_000)
      about((await ask([rpm], subject)).waitMs, 31_000)
      about((await ask([rpm], subject)).waitMs, 32_000)
      await opened.advance(30_500)
      // The window and the wait that was announced first are over: the rest is owed, and nothing is added.
      for (let i = 0; i < 2; i++) {
        const refused = await ask([rpm], subject)
        assert.deepEqual(refused.refusedBy, rpm)
        about(refused.waitMs, 1500)
      }
      await opened.advance(1500)
      assert.ok(await admitted([rpm], subject))
    })

    it('adds nothing after the time that was returned first', async () => {
      const subject = fresh()
      const rpm = limit('rpm', subject, 1)
      await ask([rpm], subject)
      await opened.advance(20_000)
      await ask([rpm], subject)
      await opened.advance(5000)
      for (let i = 0; i < 9; i++) await ask([rpm], subject)
      await opened.advance(36_000)
      about((await ask([rpm], subject)).waitMs, 8000)
      await opened.advance(4000)
      about((await ask([rpm], subject)).waitMs, 4000)
      await opened.advance(4000)
      assert.ok(await admitted([rpm], subject))
    })

    it('never prolongs a wait beyond a minute from the present', async () => {
      const subject = fresh()
      const rpm = limit('rpm', subject, 1)
      await ask([rpm], subject)
      await ask([rpm], subject)
      await opened.advance(3000)
      for (let i = 0; i < 10; i++) assert.ok((await ask([rpm], subject)).waitMs <= 60_000)
    })

    it('does not prolong the wait of another sender of the limit', async () => {
      const rpm = limit('rpm', fresh(), 1)
      await ask([rpm], 'first')
      const { waitMs } = await ask([rpm], `patient ${rpm.key}`)
      await ask([rpm], `impatient ${rpm.key}`)
      await opened.advance(10_000)
      for (let i = 0; i < 5; i++) await ask([rpm], `impatient ${rpm.key}`)
      await opened.advance(waitMs - 10_000)
      assert.ok(!(await admitted([rpm], `impatient ${rpm.key}`)))
      assert.ok(await admitted([rpm], `patient ${rpm.key}`))
    })

    it('returns the limit that refused while the sender must wait', async () => {
      const subject = fresh()
      const limits = [limit('rpm', subject, 9), limit('tpm', subject, 10, 6)]
      await ask(limits, subject)
      await ask(limits, subject)
      await opened.advance(10_000)
      await ask(limits, subject)
      await opened.advance(50_500)
      const refused = await ask(limits, subject)
      assert.equal(refused.refusedBy?.kind, 'tpm')
      assert.deepEqual(
        refused.counts.map(({ used }) => used),
        [0, 0],
        'it has consumed nothing',
      )
    })
  })
}
