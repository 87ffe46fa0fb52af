import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it, mock } from 'node:test'
import { ProbeClaims } from '../../lib/routing/lines/probe-claims.ts'

const ID = 'probe holder l'

describe('the turn to probe a line', () => {
  let now: number
  let claims: ProbeClaims
  before(() => mock.method(performance, 'now', () => now))
  after(() => mock.reset())
  beforeEach(() => {
    now = 10_000
    claims = new ProbeClaims(ID, 'us')
  })
  const note = (lifeMs: number) => ({ id: ID, value: 'us', lifeMs, when: 'free' })
  const heldBy = (value: string, leftMs: number) => claims.read(new Map([[ID, { value, leftMs }]]))
  const refuse = (...agoMs: number[]) => {
    const at = now
    for (const ago of agoMs) {
      now = at - ago
      claims.wanted()
    }
    now = at
  }

  const rows: [name: string, refusedMsAgo: number[], isBusy: boolean][] = [
    ['has refused nobody', [], false],
    ['has refused one call', [0], false],
    ['has refused two within a second', [1000, 0], true],
    ['has refused two, the first more than a second ago', [1001, 0], false],
    ['has refused many', [900, 500, 100], true],
  ]
  for (const [name, refused, isBusy] of rows)
    it(`is asked for, and not taken, by a process that is busy: one that ${name}`, () => {
      refuse(...refused)
      assert.equal(claims.mayProbe, !isBusy)
      assert.equal(claims.ask(), isBusy)
      assert.deepEqual(claims.note(false), isBusy ? note(1000) : undefined)
      assert.equal(claims.note(false), undefined, 'once')
      assert.equal(claims.isTold, false)
    })

  it('is kept while a probe runs, and given back when it ends', () => {
    assert.deepEqual(claims.note(true), note(3000))
    assert.equal(claims.isTold, true)
    assert.deepEqual(claims.note(true), note(3000))
    assert.deepEqual(claims.note(false), note(0))
    assert.equal(claims.isTold, false)
    assert.equal(claims.note(false), undefined)
  })

  for (const busy of [true, false])
    it(`belongs to one process until its time is over; this one is ${busy ? '' : 'not '}busy`, () => {
      if (busy) refuse(100, 0)
      heldBy('us', 500)
      assert.deepEqual([claims.mayProbe, claims.ask()], [true, false])
      heldBy('them', 500)
      assert.deepEqual([claims.mayProbe, claims.ask()], [false, false])
      now += 499
      assert.deepEqual([claims.mayProbe, claims.ask()], [false, false])
      now += 1
      assert.deepEqual([claims.mayProbe, claims.ask()], [!busy, busy])
      heldBy('them', 500)
      claims.read(new Map([['probe others l', { value: 'them', leftMs: 500 }]]))
      assert.deepEqual([claims.mayProbe, claims.ask()], [!busy, busy], 'that of another circuit')
    })
})
