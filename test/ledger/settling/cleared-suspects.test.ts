import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Charge } from '../../../lib/ledger/settling/charge.ts'
import { WaitingCharges } from '../../../lib/ledger/settling/waiting-charges.ts'
import { charge, failAlone, lineOf, many, names } from '../support/waiting-line.ts'

describe('charges that failed one by one while nothing was written', () => {
  const outage = (count: number) => {
    const waiting = new WaitingCharges()
    const charges = many(count)
    for (const each of charges) for (let time = 0; time < 4; time++) failAlone(waiting, each, 1)
    for (const each of charges) waiting.failedAlone(each, 0)
    return waiting
  }

  it('are sent together again when one is written, the oldest first', () => {
    const waiting = outage(20)
    const [first] = waiting.take(1e9)
    assert.equal(first?.requestId, '0')
    waiting.settled(1)
    assert.deepEqual(names(waiting.take(0)), names(many(8, 1)))
    waiting.settled(8)
    assert.deepEqual(names(waiting.take(0)), names(many(11, 9)))
  })

  it('are no longer suspected after that, but one that fails alone again is', () => {
    const waiting = outage(2)
    waiting.take(1e9)
    waiting.settled(1)
    const [other] = waiting.take(0) as [Charge]
    assert.equal(waiting.areSuspect([other]), false)
    assert.equal(waiting.failedAlone(other, 0), true)
  })

  it('remain separate if one was written after two failures, as that may be their own fault', () => {
    const waiting = lineOf(charge('other'))
    const one = charge('one')
    waiting.failedAlone(one, 0)
    assert.deepEqual(names(waiting.take(1e9)), ['one'])
    waiting.failedAlone(one, 0)
    assert.deepEqual(names(waiting.take(0)), ['other'])
    waiting.settled(1)
    assert.deepEqual(waiting.take(0), [], 'the one is not in the line')
    assert.deepEqual(names(waiting.take(1e9)), ['one'])
    assert.equal(waiting.failedAlone(one, 0), true)
  })
})
