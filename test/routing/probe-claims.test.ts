import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it, mock, type TestContext } from 'node:test'
import { Circuit } from '../../lib/routing/lines/circuit.ts'
import { ProbeClaims } from '../../lib/routing/lines/probe-claims.ts'
import { SharedCircuit } from '../../lib/routing/lines/shared-circuit.ts'

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

describe('a process whose calls wait for their turn to probe', () => {
  /** An open circuit on a clock that the test sets, and whether each telling of the others was urgent. */
  function openCircuit(t: TestContext) {
    let now = 10_000
    t.mock.method(performance, 'now', () => now)
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const settings = { errorPercent: 50, minimumCalls: 2, windowMs: 10_000, resetMs: 1000 }
    const circuit = new Circuit(settings)
    t.after(() => circuit.close())
    const told: boolean[] = []
    const tell = (_shared: unknown, isUrgent: boolean) => void told.push(isUrgent)
    const shared = new SharedCircuit('l', circuit, settings, { id: 'us', isAlone: false, tell, forget() {} })
    for (const account of ['x', 'y']) circuit.fail(circuit.enter(account), account)
    told.length = 0
    return {
      ...{ circuit, told, shared },
      pass(ms: number): void {
        now += ms
      },
      refuses(account: string, times: number): void {
        for (let i = 0; i < times; i++) assert.equal(circuit.admits(account), false)
      },
      /** Learns whose turn it is. */
      reads(...turns: [id: string, process: string][]): void {
        shared.read(new Map(turns.map(([id, value]) => [id, { value, leftMs: 500 }])))
        told.length = 0
      },
    }
  }

  for (const whose of ['holder', 'others'] as const)
    it(`asks for it at once when nobody has it any more; it is that of the ${whose}`, (t) => {
      const { circuit, told, shared, pass, refuses, reads } = openCircuit(t)
      const id = `probe ${whose} l`
      pass(1000)
      if (whose === 'others') circuit.fail(circuit.enter('x'), 'x')
      reads([id, 'them'])
      refuses('y', 2)
      assert.deepEqual(told, [], 'the others have nothing to learn')
      reads()
      refuses('y', 1)
      assert.deepEqual(told, [true])
      const asked = shared.notes().filter((note) => note.id === id)
      assert.deepEqual(asked, [{ id, value: 'us', lifeMs: 1000, when: 'free' }])
      reads([id, 'us'])
      assert.equal(circuit.admits('y'), true)
    })

  it('does not ask before a probe may pass', (t) => {
    const { told, refuses } = openCircuit(t)
    refuses('x', 3)
    assert.deepEqual(told, [])
  })
})
