import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { Circuit, type CircuitEntry } from '../../lib/routing/lines/circuit.ts'

const SETTINGS = { errorPercent: 50, minimumCalls: 3, windowMs: 10_000, resetMs: 1000 }

/** A circuit on a clock that a test sets. */
function circuitOn(t: TestContext, settings = SETTINGS) {
  let now = 1_000_000
  t.mock.timers.enable({ apis: ['setTimeout'] })
  t.mock.method(performance, 'now', () => now)
  const circuit = new Circuit(settings)
  t.after(() => circuit.close())
  const enter = (account: string): CircuitEntry => {
    assert.ok(circuit.admits(account), `${account} is let through`)
    return circuit.enter(account)
  }
  return {
    circuit,
    enter,
    fails: (account: string, times = 1) => {
      for (let i = 0; i < times; i++) circuit.fail(enter(account), account)
    },
    succeeds: (account: string) => circuit.succeed(enter(account)),
    pass: (ms: number) => {
      now += ms
      t.mock.timers.tick(ms)
    },
    /** Timers are late. */
    passUnnoticed: (ms: number) => {
      now += ms
    },
    admitted: () => ['x', 'y', 'z'].filter((account) => circuit.admits(account)).join(''),
  }
}

describe('a circuit that one account alone has opened', () => {
  it('holds for that account, and its probe closes it', (t) => {
    const { circuit, fails, succeeds, pass, admitted } = circuitOn(t)
    fails('x', 3)
    assert.equal(circuit.state, 'open')
    assert.equal(circuit.holder, 'x')
    assert.equal(admitted(), 'yz')
    assert.equal(circuit.retryAfterMs('x'), 1000)
    assert.equal(circuit.stateFor('y'), 'closed')
    for (let i = 0; i < 20; i++) succeeds('y')
    assert.equal(admitted(), 'yz', 'the success of others says nothing about its calls')
    pass(1000)
    succeeds('x')
    assert.equal(circuit.state, 'closed')
    assert.equal(admitted(), 'xyz')
  })

  it('counts from nothing when it has closed, successes too', (t) => {
    const { circuit, fails, succeeds, pass, admitted } = circuitOn(t)
    fails('x', 3)
    pass(1000)
    succeeds('x')
    for (let i = 0; i < 4; i++) succeeds('y')
    fails('y', 3)
    assert.equal(admitted(), 'xyz', 'three of seven')
    assert.deepEqual(circuit.failures, { all: 7, failures: 3, account: 'y' })
    fails('y')
    assert.equal(admitted(), 'xz', 'four of eight')
    assert.equal(circuit.failures, undefined)
  })

  it('opens for all at the first failure of another, for the whole time', (t) => {
    const { circuit, fails, pass, admitted } = circuitOn(t)
    fails('x', 3)
    pass(900)
    fails('y')
    assert.equal(admitted(), '')
    assert.equal(circuit.holder, undefined)
    assert.equal(circuit.retryAfterMs('z'), 1000)
    pass(999)
    assert.equal(admitted(), '')
    pass(1)
    assert.equal(admitted(), 'xyz')
  })

  it('stays open for all while the probe of one after the other fails', (t) => {
    const { circuit, fails, succeeds, pass, admitted } = circuitOn(t)
    fails('x', 3)
    fails('y')
    pass(1000)
    fails('x')
    assert.equal(admitted(), 'yz', 'x waits')
    assert.deepEqual([circuit.state, circuit.holder], ['open', undefined])
    pass(1000)
    assert.deepEqual([circuit.state, circuit.holder], ['half_open', undefined])
    succeeds('x')
    assert.equal(circuit.state, 'closed')
  })

  it('also opens for all at the failure of a call that began before', (t) => {
    const { circuit, enter, fails, admitted } = circuitOn(t)
    const early = enter('y')
    fails('x', 3)
    circuit.fail(early, 'y')
    assert.equal(admitted(), '')
  })
})

describe('the failure of an answer that had begun', () => {
  it('counts for nothing where the circuit has opened and closed since', (t) => {
    const { circuit, enter, fails, succeeds, pass } = circuitOn(t, { ...SETTINGS, minimumCalls: 1 })
    const early = enter('x')
    fails('y')
    pass(1000)
    succeeds('y')
    circuit.failLate(early, 'x', performance.now())
    assert.deepEqual([circuit.state, circuit.failures], ['closed', undefined])
  })

  it('opens a circuit for all that another account alone has opened', (t) => {
    const { circuit, enter, fails, admitted } = circuitOn(t)
    const early = enter('y')
    fails('x', 3)
    circuit.failLate(early, 'y', performance.now())
    assert.equal(admitted(), '')
  })

  it('changes nothing where it was the probe, and the circuit has opened since', (t) => {
    const { circuit, enter, fails, pass, admitted } = circuitOn(t)
    fails('x', 2)
    fails('y')
    pass(1000)
    const probe = enter('y')
    circuit.succeed(probe)
    fails('x', 3)
    circuit.failLate(probe, 'y', performance.now())
    assert.equal(admitted(), 'yz')
  })
})

describe('a circuit that is of no use any more', () => {
  it('stays as it was, so that a running call gets no more of a line that is removed', (t) => {
    const { circuit, fails, pass, admitted } = circuitOn(t)
    fails('x', 3)
    circuit.close()
    pass(1000)
    assert.deepEqual([circuit.state, admitted()], ['open', 'yz'])
  })
})

describe('a circuit whose time is over', () => {
  for (const inTime of [false, true]) {
    it(`lets a probe through although its timer is late, and is half open once (${inTime ? 'which fires then' : 'which does not fire'})`, (t) => {
      const { circuit, enter, fails, pass, passUnnoticed } = circuitOn(t)
      fails('x', 2)
      fails('y')
      assert.equal(circuit.state, 'open')
      passUnnoticed(999)
      assert.equal(circuit.retryAfterMs('z'), 1)
      assert.equal(circuit.admits('z'), false)
      passUnnoticed(1)
      assert.equal(circuit.retryAfterMs('z'), 0)
      const probe = enter('z')
      assert.equal(circuit.admits('y'), false, 'the probe is the only one')
      assert.equal(circuit.retryAfterMs('y'), 1000, 'nobody comes again at once')
      if (inTime) pass(1000)
      circuit.succeed(probe)
      assert.equal(circuit.state, 'closed')
      pass(1000)
      assert.equal(circuit.state, 'closed')
      assert.deepEqual(circuit.changes, { closed: 1, open: 1, half_open: 1 })
    })
  }
})

describe('a circuit that several accounts have opened', () => {
  it('holds for all', (t) => {
    const { fails, admitted } = circuitOn(t)
    fails('x', 2)
    fails('y')
    assert.equal(admitted(), '')
  })

  it('takes only failures of its window for those of others', (t) => {
    const { fails, pass, admitted } = circuitOn(t)
    fails('y')
    pass(11_000)
    fails('x', 3)
    assert.equal(admitted(), 'yz')
  })

  it('is not kept open by the probes of one account', (t) => {
    const { circuit, enter, pass, admitted } = circuitOn(t)
    for (const account of ['x', 'y', 'x']) circuit.fail(enter(account), account)
    for (const end of ['fail', 'skip'] as const) {
      pass(1000)
      const probe = enter('x')
      assert.equal(admitted(), '', 'one probe at a time')
      if (end === 'fail') circuit.fail(probe, 'x')
      else circuit.skip(probe)
      assert.equal(admitted(), 'yz', 'others may probe at once')
      const other = enter('y')
      assert.equal(admitted(), '')
      if (end === 'fail') circuit.fail(other, 'y')
      else circuit.succeed(other)
    }
    assert.equal(admitted(), 'xyz')
    assert.equal(circuit.state, 'closed')
  })

  it('is not blocked by a probe of another account that takes long', (t) => {
    const { circuit, enter, pass, admitted } = circuitOn(t)
    for (const account of ['x', 'y', 'x']) circuit.fail(enter(account), account)
    pass(1000)
    const slow = enter('x')
    assert.equal(admitted(), '')
    pass(1000)
    assert.equal(admitted(), 'yz')
    circuit.succeed(enter('y'))
    circuit.fail(slow, 'x')
    assert.equal(circuit.state, 'closed', 'the late verdict of the first probe does not count')
  })
})

describe('circuits, whatever several accounts do', () => {
  it('never keep out an account but by failures of two', (t) => {
    let seed = 7
    const random = (below: number): number => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed % below
    }
    const { circuit, pass } = circuitOn(t)
    // One account does anything; the others succeed whenever they are let through.
    const running: CircuitEntry[] = []
    for (let i = 0; i < 5000; i++) {
      if (circuit.admits('x') && random(2) === 0) running.push(circuit.enter('x'))
      const entry = running.splice(random(running.length || 1), 1)[0]
      if (entry !== undefined) {
        if (random(4) > 0) circuit.fail(entry, 'x')
        else if (random(2) === 0) circuit.skip(entry)
        else circuit.succeed(entry)
      }
      if (random(5) === 0) pass(random(400))
      assert.ok(circuit.admits('y'), `step ${i}: ${circuit.state}`)
      if (random(3) === 0) circuit.succeed(circuit.enter('y'))
    }
  })
})
