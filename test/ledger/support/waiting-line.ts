import assert from 'node:assert/strict'
import type { Charge } from '../../../lib/ledger/settling/charge.ts'
import { WaitingCharges } from '../../../lib/ledger/settling/waiting-charges.ts'

/** A charge as its place in the queue has it. */
export function charge(name: string, members: Partial<Charge> = {}): Charge {
  const place = { since: 0, bytes: 2048, failures: 0, settledBefore: 0, retryAt: 0 }
  return { requestId: name, ...place, ...members } as Charge
}

/** Charges named by their numbers. */
export const many = (count: number, from = 0) =>
  Array.from({ length: count }, (_, i) => charge(`${from + i}`))
export const names = (charges: Iterable<Charge>) => Array.from(charges, ({ requestId }) => requestId)

export function lineOf(...charges: Charge[]): WaitingCharges {
  const waiting = new WaitingCharges()
  for (const each of charges) waiting.add(each)
  return waiting
}

/** Fails it alone so often, at a time, and takes it out again. */
export function failAlone(waiting: WaitingCharges, one: Charge, times: number, at = 0): void {
  for (let time = 0; time < times; time++) {
    assert.equal(waiting.failedAlone(one, at), false)
    assert.deepEqual(waiting.take(Number.POSITIVE_INFINITY), [one])
  }
}
