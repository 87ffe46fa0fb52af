import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import type { BilledCall } from '../../../lib/middleware/billing-guard/billed-call.ts'
import { billedCall, COST, ENDING, sent } from './billed-calls.ts'

const unavailable = (error: unknown) => error instanceof GatewayError && error.code === 'billing_unavailable'

/** Checks what a refusal says. None may say that nothing was run: the upstream has answered. */
const saying = (words: RegExp) => (error: unknown) => {
  assert.ok(unavailable(error))
  assert.match((error as GatewayError).message, words)
  assert.doesNotMatch((error as GatewayError).message, /nothing was run/)
  return true
}

describe('a charge that is not confirmed', () => {
  for (const later of [false, true]) {
    const unconfirmed = () => (later ? Promise.resolve('unconfirmed' as const) : 'unconfirmed')
    const settled = async (billed: BilledCall) => billed.settle(ENDING)

    it(`keeps an answer back, and is undone, ${later ? 'reported later' : 'reported at once'}`, async () => {
      const { call, billed, log, entries, used } = billedCall({ outcome: unconfirmed(), claim: {} })
      used()
      await assert.rejects(settled(billed), saying(/withheld and not charged\. Retry/))
      assert.deepEqual(log, [`settle ${COST}`, 'discard', 'revoke'])
      assert.deepEqual([call.billing?.charged, entries], [null, [null]])
    })

    it(`stands where some of the answer was sent, ${later ? 'reported later' : 'reported at once'}`, async () => {
      const { call, billed, log, used, res } = billedCall({ outcome: unconfirmed() })
      used()
      sent(res)
      await assert.rejects(settled(billed), saying(/is charged: look it up/))
      assert.deepEqual([log, call.billing?.charged], [[`settle ${COST}`], COST])
    })

    it(`is taken for confirmed where answers are delivered all the same, ${later ? 'reported later' : 'reported at once'}`, async () => {
      const options = {
        outcome: unconfirmed(),
        onStoreError: 'deliver',
        settlesRecords: true,
        claim: {},
      } as const
      const { billed, log, used, claim } = billedCall(options)
      used()
      await settled(billed)
      assert.deepEqual([log, claim?.state], [[`settle ${COST}`], 'completed'])
    })
  }

  it('leaves the entry of a call to the log where the log writes it', () => {
    for (const revoked of ['queued', 'dropped'] as const) {
      const { call, billed, bills, entries, used } = billedCall({
        ...{ outcome: 'unconfirmed', settlesRecords: true, revoked },
      })
      used()
      call.entryBy = 'writer'
      assert.throws(() => billed.settle(ENDING), unavailable)
      assert.deepEqual([bills[0]?.entry, entries, call.entryBy], [null, [null], 'writer'])
    }
  })

  it('writes the entry of a call that was not answered, or leaves it to the log', () => {
    for (const revoked of ['queued', 'dropped'] as const) {
      const { call, billed, entries, used } = billedCall({
        outcome: 'unconfirmed',
        settlesRecords: true,
        revoked,
      })
      used()
      call.entryBy = 'ledger'
      assert.throws(() => billed.settle(ENDING), unavailable)
      const [entry] = entries as { status: number; outcome: string; error_code: string }[]
      assert.deepEqual(
        [entry?.status, entry?.outcome, entry?.error_code],
        [503, 'failed', 'billing_unavailable'],
      )
      assert.equal(call.entryBy, revoked === 'queued' ? 'written' : 'ledger')
    }
  })

  it('is no error for a caller that has left', () => {
    const { billed, log, used, close, call } = billedCall({ outcome: 'unconfirmed' })
    used()
    call.hold()
    close()
    assert.equal(billed.settle(ENDING), undefined)
    assert.deepEqual(log, [`settle ${COST}`])
  })
})
