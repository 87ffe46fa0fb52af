import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Charge } from '../../../lib/ledger/settling/charge.ts'
import { WaitingCharges } from '../../../lib/ledger/settling/waiting-charges.ts'
import { charge, failAlone, lineOf, many, names } from '../support/waiting-line.ts'

describe('queued charges', () => {
  it('are sent five hundred at once, in order', () => {
    const waiting = lineOf(...many(1001))
    assert.equal(waiting.size, 1001)
    const taken = [waiting.take(0), waiting.take(0), waiting.take(0), waiting.take(0)]
    assert.deepEqual(
      taken.map(({ length }) => length),
      [500, 500, 1, 0],
    )
    assert.deepEqual(names(taken.flat()), names(many(1001)))
    assert.equal(waiting.size, 0)
    assert.equal(lineOf(...many(500)).take(0).length, 500)
  })

  it('are sent in batches of at most eight mebibytes, or one larger charge alone', () => {
    const MiB = 1024 * 1024
    const waiting = lineOf(
      charge('small'),
      charge('half', { bytes: 4 * MiB }),
      charge('rest', { bytes: 4 * MiB - 2048 }),
      charge('next'),
      charge('large', { bytes: 9 * MiB }),
      charge('last'),
    )
    const taken = Array.from({ length: 5 }, () => names(waiting.take(0)))
    assert.deepEqual(taken, [['small', 'half', 'rest'], ['next'], ['large'], ['last'], []])
  })

  it('may be taken out, if they are queued', () => {
    const [one, two, three] = many(3) as [Charge, Charge, Charge]
    const waiting = lineOf(one, two, three)
    assert.deepEqual(
      [waiting.remove(two), waiting.remove(two), waiting.remove(charge('other'))],
      [true, false, false],
    )
    assert.equal(waiting.remove(one), true)
    assert.deepEqual(names(waiting.take(0)), ['2'])
  })

  it('have the age of the oldest of them, at any position', () => {
    assert.equal(new WaitingCharges().oldest, undefined)
    const waiting = lineOf(charge('line', { since: 30 }), charge('later', { since: 40 }))
    assert.equal(waiting.oldest, 30)
    waiting.failedAlone(charge('suspect', { since: 20 }), 0)
    waiting.failedAlone(charge('other', { since: 25 }), 0)
    assert.equal(waiting.oldest, 20)
    waiting.keepAside(charge('aside', { since: 1 }), 0)
    assert.equal(waiting.oldest, 20, 'those set aside do not count')
    const alone = new WaitingCharges()
    alone.failedAlone(charge('suspect', { since: 20 }), 0)
    assert.equal(alone.oldest, 20)
  })

  it('are sent first if they are put first', () => {
    const waiting = lineOf(...many(2))
    waiting.putBack([charge('first')])
    assert.deepEqual(names(waiting.take(0)), ['first', '0', '1'])
  })

  it('are all listed together: failed alone, queued, and set aside', () => {
    const waiting = lineOf(charge('waits'))
    waiting.failedAlone(charge('suspect'), 0)
    waiting.keepAside(charge('aside'), 0)
    assert.deepEqual(names(waiting.all()), ['suspect', 'waits', 'aside'])
    assert.deepEqual([waiting.size, waiting.setAside], [2, 1])
  })
})

describe('charges that failed together', () => {
  it('are sent next, in order before the others, an eighth at once', () => {
    const waiting = lineOf(...many(500), ...many(20, 500))
    waiting.failedTogether(waiting.take(0))
    assert.equal(waiting.size, 520)
    const batch = waiting.take(0)
    assert.deepEqual(names(batch), names(many(63)))
    waiting.failedTogether(batch)
    const smaller = waiting.take(0)
    assert.equal(smaller.length, 8)
    waiting.failedTogether(smaller)
    assert.deepEqual(names(waiting.take(0)), ['0'])
  })

  it('are sent in eight times larger batches after each success, up to the former size', () => {
    const waiting = lineOf(...many(2))
    waiting.failedTogether(waiting.take(0))
    for (const each of many(3000)) waiting.add(each)
    const sizes: number[] = []
    for (let time = 0; time < 5; time++) {
      const { length } = waiting.take(0)
      sizes.push(length)
      waiting.settled(length)
    }
    assert.deepEqual(sizes, [1, 8, 64, 500, 500])
  })
})

describe('a charge that failed alone', () => {
  it('is retried alone after a while in which nothing is sent; with longer delays in a row', () => {
    const waiting = new WaitingCharges()
    const one = charge('one')
    const seen: number[][] = []
    for (let time = 0; time < 6; time++) {
      waiting.failedAlone(one, 1000)
      seen.push([waiting.resumeAt, one.retryAt])
      assert.deepEqual(waiting.take(one.retryAt - 1), [])
      assert.deepEqual(names(waiting.take(one.retryAt)), ['one'])
    }
    assert.deepEqual(
      seen,
      [50, 100, 200, 400, 500, 500].map((ms) => [1000 + ms, 1000 + ms]),
    )
  })

  it('has a delay by its own failures, and all by those in a row, which a success ends', () => {
    const waiting = new WaitingCharges()
    const [one, other] = [charge('one'), charge('other')]
    waiting.failedAlone(one, 0)
    waiting.failedAlone(other, 0)
    assert.deepEqual([waiting.resumeAt, one.retryAt, other.retryAt], [100, 50, 50])
    waiting.settled(1)
    waiting.failedAlone(one, 0)
    assert.deepEqual([waiting.resumeAt, one.retryAt], [50, 100])
  })

  it('takes turns with queued ones, which are then sent one by one', () => {
    const waiting = lineOf(...many(3))
    waiting.failedAlone(charge('one'), 0)
    waiting.failedAlone(charge('other'), 0)
    const taken = Array.from({ length: 6 }, () => names(waiting.take(100)))
    assert.deepEqual(taken, [['one'], ['0'], ['other'], ['1'], ['2'], []])
  })

  it('does not delay those that may be sent before it is due', () => {
    const waiting = lineOf(charge('waits'))
    waiting.failedAlone(charge('suspect'), 0)
    assert.deepEqual(names(waiting.take(49)), ['waits'])
    assert.equal(waiting.dueAt, 50)
    assert.deepEqual(names(waiting.take(50)), ['suspect'])
  })

  it('is not at fault while no other succeeds, after any number of failures', () => {
    const waiting = new WaitingCharges()
    waiting.settled(7)
    failAlone(waiting, charge('one'), 20)
  })

  it('is at fault itself the third time, if another was settled since the first', () => {
    const waiting = new WaitingCharges()
    const one = charge('one')
    failAlone(waiting, one, 1)
    waiting.settled(1)
    failAlone(waiting, one, 1)
    assert.equal(waiting.failedAlone(one, 0), true)
    assert.deepEqual([waiting.size, waiting.take(1e9)], [0, []])
  })
})

describe('charges may be at fault themselves', () => {
  it('if each one that is queued or being sent has failed alone three times', () => {
    const waiting = new WaitingCharges()
    assert.equal(waiting.areSuspect([]), true)
    const one = charge('one')
    failAlone(waiting, one, 1)
    waiting.failedAlone(one, 0)
    assert.equal(waiting.areSuspect([]), false, 'twice')
    assert.deepEqual(waiting.take(1e9), [one])
    waiting.failedAlone(one, 0)
    assert.equal(waiting.areSuspect([]), true)
    assert.equal(waiting.areSuspect([charge('flies', { failures: 2 })]), false)
    assert.equal(waiting.areSuspect([charge('flies', { failures: 3 })]), true)
    waiting.add(charge('waits', { failures: 3 }))
    assert.equal(waiting.areSuspect([]), false)
  })
})

describe('a charge that is set aside', () => {
  it('is retried after thirty seconds, alone and after all others', () => {
    const waiting = lineOf(charge('waits'))
    waiting.keepAside(charge('first'), 1000)
    waiting.keepAside(charge('second'), 500)
    assert.deepEqual(names(waiting.take(60_000)), ['waits'])
    assert.equal(waiting.dueAt, 30_500)
    assert.deepEqual(waiting.take(30_499), [])
    assert.deepEqual(names(waiting.take(30_500)), ['second'])
    assert.deepEqual([waiting.setAside, waiting.dueAt], [1, 31_000])
    assert.deepEqual(names(waiting.take(31_000)), ['first'])
    assert.deepEqual([waiting.setAside, waiting.dueAt], [0, undefined])
  })

  it('is due after one that failed alone', () => {
    const waiting = new WaitingCharges()
    waiting.keepAside(charge('aside'), -100_000)
    waiting.failedAlone(charge('suspect'), 0)
    assert.equal(waiting.dueAt, 50)
  })

  it('is retried at once when it is readmitted, like a new one', () => {
    const waiting = new WaitingCharges()
    const [one, two] = [charge('one'), charge('two')]
    waiting.keepAside(one, 0)
    waiting.keepAside(two, 0)
    waiting.readmit(700)
    assert.deepEqual([waiting.setAside, waiting.size, waiting.oldest, waiting.dueAt], [0, 2, 700, 700])
    assert.deepEqual(waiting.take(699), [])
    assert.deepEqual(
      [names(waiting.take(700)), names(waiting.take(700)), waiting.take(1e9)],
      [['one'], ['two'], []],
    )
  })
})
