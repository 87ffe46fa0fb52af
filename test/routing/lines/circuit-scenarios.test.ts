import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { BreakerAttempt, Verdict } from '../../../lib/routing/lines/account-breaker.ts'
import { Circuit } from '../../../lib/routing/lines/circuit.ts'

const SETTINGS = { errorPercent: 50, minimumCalls: 3, windowMs: 10_000, resetMs: 1000 }

const VERDICTS: Readonly<Record<string, Verdict>> = { answers: 'success', fails: 'failure', leaves: 'none' }

/**
 * One step and what holds after it: which of the accounts x, y and z the circuit lets through, its state, and the only
 * account that it is open to, if others use it.
 *
 * A step is time that passes (`+1000`), attempts of an account (`x fails 3`), the begin of one (`x begins`), or the end of
 * the earliest that runs (`x at last fails`); `breaks off` is a failure after the first output.
 */
type Step = readonly [step: string, admitted: string, state: string, onlyOpenFor?: string]

const SCENARIOS: Readonly<Record<string, readonly Step[]>> = {
  'one account opens it to itself alone': [
    ['y answers 20', 'xyz', 'closed'],
    ['x fails 2', 'xyz', 'closed'],
    ['x fails', 'yz', 'open', 'x'],
    ['y answers 20', 'yz', 'open', 'x'],
    ['+999', 'yz', 'open', 'x'],
    ['+1', 'xyz', 'half_open', 'x'],
    ['x answers', 'xyz', 'closed'],
  ],
  'the only account in use opens it to all who look': [
    ['x answers 5', 'xyz', 'closed'],
    ['x fails 3', 'yz', 'open'],
    ['y answers', 'yz', 'open', 'x'],
  ],
  'an account that called before the window is not in use': [
    ['y answers', 'xyz', 'closed'],
    ['x answers', 'xyz', 'closed'],
    ['+10001', 'xyz', 'closed'],
    ['x fails 3', 'yz', 'open'],
  ],
  'failures are a share of the calls since the first of them': [
    ['x fails', 'xyz', 'closed'],
    ['x answers 3', 'xyz', 'closed'],
    ['x fails', 'xyz', 'closed'],
    ['x fails', 'yz', 'open'],
  ],
  'attempts without a verdict are none of the failures': [
    ['x leaves 5', 'xyz', 'closed'],
    ['x fails 3', 'yz', 'open'],
  ],
  'failures of before the window do not count': [
    ['x fails 2', 'xyz', 'closed'],
    ['+11000', 'xyz', 'closed'],
    ['x fails', 'xyz', 'closed'],
    ['x fails', 'xyz', 'closed'],
    ['x fails', 'yz', 'open'],
  ],
  'answers that break off count as failures': [
    ['x breaks off', 'xyz', 'closed'],
    ['x breaks off', 'yz', 'open'],
  ],
  'it is open to all when it is open to two': [
    ['x fails 3', 'yz', 'open'],
    ['y fails 2', 'yz', 'open', 'x'],
    ['y fails', '', 'open'],
    ['+999', '', 'open'],
    ['+1', 'xyz', 'half_open'],
    ['z answers', 'xyz', 'closed'],
  ],
  'a single trial closes it to all, and its failures of before are over': [
    ['x fails 3', 'yz', 'open'],
    ['y fails 3', '', 'open'],
    ['+1000', 'xyz', 'half_open'],
    ['z begins', '', 'half_open'],
    ['z at last answers', 'xyz', 'closed'],
    ['x fails 2', 'xyz', 'closed'],
    ['y fails 2', 'xyz', 'closed'],
  ],
  'a failing trial keeps out its own account, and others may try': [
    ['x fails 3', 'yz', 'open'],
    ['y fails 3', '', 'open'],
    ['+1000', 'xyz', 'half_open'],
    ['x begins', '', 'half_open'],
    ['x at last fails', 'yz', 'open'],
    ['z fails', '', 'open'],
    ['+1000', 'xyz', 'half_open'],
  ],
  'a trial without a verdict is no success': [
    ['x fails 3', 'yz', 'open'],
    ['+1000', 'xyz', 'half_open'],
    ['x begins', 'yz', 'half_open'],
    ['x at last leaves', 'yz', 'open'],
    ['+1000', 'xyz', 'half_open'],
    ['x answers', 'xyz', 'closed'],
  ],
  'a trial that takes long keeps nobody else out': [
    ['x fails 3', 'yz', 'open'],
    ['y fails 3', '', 'open'],
    ['+1000', 'xyz', 'half_open'],
    ['x begins', '', 'half_open'],
    ['+1000', 'yz', 'half_open'],
    ['z answers', 'xyz', 'closed'],
    ['x at last fails', 'xyz', 'closed'],
  ],
  'attempts that began before it opened decide nothing': [
    ['x begins', 'xyz', 'closed'],
    ['x begins', 'xyz', 'closed'],
    ['x fails 3', 'yz', 'open'],
    ['+1000', 'xyz', 'half_open'],
    ['x at last answers', 'xyz', 'half_open'],
    ['x at last fails', 'xyz', 'half_open'],
  ],
  'nothing is remembered of an account that does not come back': [
    ['x fails 3', 'yz', 'open'],
    ['+1000', 'xyz', 'half_open'],
    ['+11000', 'xyz', 'closed'],
    ['y fails 3', 'xz', 'open'],
    ['+12000', 'xyz', 'closed'],
  ],
}

function circuitOn(t: TestContext) {
  let now = 1_000_000
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] })
  t.mock.method(performance, 'now', () => now)
  const circuit = new Circuit(SETTINGS)
  t.after(() => circuit.close())
  const running: [account: string, attempt: BreakerAttempt | undefined][] = []
  const begin = (account: string) => {
    assert.ok(circuit.admits(account), `${account} is let through`)
    return circuit.begin(account)
  }
  const end = (account: string, attempt: BreakerAttempt | undefined, how: string) => {
    circuit.end(attempt, account, VERDICTS[how] ?? 'success')
    if (how === 'breaks') circuit.fail(account)
  }
  return {
    circuit,
    async take(step: string): Promise<void> {
      const [, ms] = /^\+(\d+)$/.exec(step) ?? []
      const [, account = '', isLast, how = '', times = 1] =
        /^(\w) (at last )?(\w+)(?: off)?(?: (\d+))?$/.exec(step) ?? []
      if (ms !== undefined) {
        for (let passed = 0; passed < Number(ms); passed++) {
          now++
          t.mock.timers.tick(1)
        }
      } else if (how === 'begins') running.push([account, begin(account)])
      else if (isLast) {
        const at = running.findIndex(([each]) => each === account)
        for (const [, attempt] of running.splice(at, 1)) end(account, attempt, how)
      } else
        for (let i = 0; i < Number(times); i++) {
          end(account, begin(account), how)
          await turn()
        }
      await turn()
    },
    admitted: () => ['x', 'y', 'z'].filter((account) => circuit.admits(account)).join(''),
  }
}

describe('a circuit of several accounts', () => {
  for (const [title, steps] of Object.entries(SCENARIOS))
    it(title, async (t) => {
      const { circuit, take, admitted } = circuitOn(t)
      for (const [step, ...expected] of steps) {
        await take(step)
        const { state, onlyOpenFor } = circuit
        const [accounts, inState, whose] = expected
        assert.deepEqual([admitted(), state, onlyOpenFor], [accounts, inState, whose], step)
        for (const account of 'xyz')
          assert.equal(
            circuit.retryAfterMs(account) > 0,
            !accounts.includes(account),
            `${account} after ${step}`,
          )
      }
    })

  it('returns the time until the first trial, and during the trial the recommended wait', async (t) => {
    const { circuit, take } = circuitOn(t)
    const waits = () => ['x', 'y', 'z'].map((account) => circuit.retryAfterMs(account))
    await take('x fails 3')
    await take('+400')
    await take('y fails 3')
    assert.deepEqual(waits(), [600, 1000, 600])
    assert.equal(circuit.waitMs, 600)
    await take('+600')
    assert.deepEqual(waits(), [0, 400, 0])
    await take('z begins')
    assert.deepEqual(waits(), [1000, 400, 1000])
  })

  it('counts how often a breaker entered each state', async (t) => {
    const { circuit, take } = circuitOn(t)
    for (const step of ['x fails 3', '+1000', 'x fails', '+1000', 'x answers']) await take(step)
    assert.deepEqual(circuit.changes, { closed: 1, open: 2, half_open: 2 })
  })

  it('is not opened for an account by another one alone, with any results', async (t) => {
    let seed = 7
    const random = (below: number): number => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed % below
    }
    const { circuit, take } = circuitOn(t)
    const running: (BreakerAttempt | undefined)[] = []
    for (let i = 0; i < 1000; i++) {
      if (circuit.admits('x') && random(2) === 0) running.push(circuit.begin('x'))
      if (running.length > 0 && random(2) === 0) {
        const [attempt] = running.splice(random(running.length), 1)
        circuit.end(attempt, 'x', (['success', 'failure', 'failure', 'none'] as const)[random(4)] ?? 'none')
      }
      if (random(5) === 0) await take(`+${random(400)}`)
      assert.ok(circuit.admits('y'), `step ${i}: ${circuit.state}`)
      if (random(3) === 0) circuit.end(circuit.begin('y'), 'y', 'success')
    }
  })
})
