import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { OpenCall } from '../../../lib/core/call/index.ts'
import type { Bill } from '../../../lib/ledger/pool/reservation.ts'
import { boundedCost } from '../../../lib/middleware/billing-guard/cost.ts'
import { detachBill } from '../../../lib/middleware/billing-guard/detach-bill.ts'
import { billedCall, ENDING, USAGE } from './billed-calls.ts'

function bill(members: Partial<Bill> = {}): Bill {
  const { billed, used, call, bills } = billedCall()
  used()
  billed.settle(ENDING)
  const { amount, at, claim, entry, usage } = bills[0] as Bill
  return {
    requestId: call.id,
    amount,
    at,
    claim,
    entry,
    usage,
    basis: () => billed.basis(),
    ...members,
  } as Bill
}

it('a bill that waits without its call says the same as with it', () => {
  const { call } = billedCall()
  for (const cost of [5n, null] as const) {
    const entry = { id: 'e' } as unknown as ReturnType<NonNullable<Bill['entry']>>
    const whole = bill({ cost, bytes: 70, entry: () => entry })
    const kept = detachBill(whole, call, true)
    for (const member of ['requestId', 'amount', 'cost', 'at', 'claim', 'bytes', 'usage'] as const)
      assert.deepEqual(kept[member], whole[member], member)
    assert.equal(kept.basis(), whole.basis())
    assert.equal(kept.entry?.(), entry)
  }
  const { cost, bytes, entry } = detachBill(bill({ entry: null }), call, true)
  assert.deepEqual([cost, bytes, entry], [null, 0, null])
})

it('the claim of a bill that waits ends as its charge does, and an answer that was not sent is dropped', () => {
  for (const [outcome, state, dropped] of [
    ['confirmed', 'completed', false],
    ['fenced', 'lost', true],
    ['voided', 'released', false],
  ] as const) {
    for (const sent of [true, false]) {
      const { call, claim, log } = billedCall({ claim: { state: 'settling' } })
      detachBill(bill(), call, sent).onResolved?.(outcome)
      assert.equal(claim?.state, state)
      assert.deepEqual(log, dropped && !sent ? ['discard'] : [])
    }
    const { call, claim } = billedCall({ claim: { state: 'lost' } })
    detachBill(bill(), call, true).onResolved?.(outcome)
    assert.equal(claim?.state, 'lost', 'what has ended stays so')
    detachBill(bill(), billedCall().call, true).onResolved?.(outcome)
  }
})

it('a cost beyond the most that may be charged is bounded, and its items add up to what is left', () => {
  const items = [{ unit: 'request', quantity: 1, price: 9n }] as const
  const due = { amount: 9n, items }
  const bounded = (most: bigint | undefined, members: object = {}) => {
    const call = { usage: USAGE, billing: {}, ...members } as unknown as OpenCall
    return { cost: boundedCost(call, due, { most }), usage: call.usage }
  }
  for (const most of [undefined, 9n, 10n]) assert.equal(bounded(most).cost, due)
  assert.equal(bounded(3n, { billing: { own: 9n } }).cost, due, 'what a handler reports is not an upstream’s')
  assert.equal(bounded(3n, { usage: null }).cost, due)
  const { cost, usage } = bounded(3n)
  assert.deepEqual(cost, { amount: 3n, items: [...items, { unit: 'bounded', quantity: 1, price: -6n }] })
  const { source: _, ...reported } = USAGE
  assert.deepEqual(usage, { ...USAGE, source: 'bounded', reported })
  assert.equal(bounded(3n, { billing: null }).cost.amount, 3n)
  const earlier = { inputTokens: 8 }
  assert.deepEqual(bounded(3n, { usage: { ...USAGE, reported: earlier } }).usage?.reported, earlier)
})
