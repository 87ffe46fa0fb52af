import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LineStateStore } from '../../../lib/middleware/route/index.ts'
import { MemoryLineStateStore } from '../../support/memory-line-state-store.ts'
import { until } from '../../support/until.ts'
import { exchangeAll, processes, processOn, RESET_MS } from '../support/line-processes.ts'

/** A reset time so long that no process learns anything from a timer of the circuit. */
const LONG = { resetMs: 20_000 }

describe('a circuit shared by several processes', () => {
  const failures: [name: string, accounts: string[], admitted: string][] = [
    ['to one account, in one process', ['x'], 'y'],
    ['to one account, in two at once', ['x', 'x'], 'y'],
    ['to two accounts, in one each', ['x', 'y'], ''],
  ]
  for (const [name, accounts, admitted] of failures)
    it(`that opens ${name}, is open to them in all processes`, async (t) => {
      const all = processes(t, LONG)
      for (const [i, account] of accounts.entries()) all[i]?.fails(account)
      await exchangeAll(...all)
      assert.deepEqual(
        all.map(({ admits }) => admits()),
        [admitted, admitted, admitted],
      )
    })

  it('is open in the other processes at once', async (t) => {
    const [one, other] = processes(t, LONG)
    one.fails('x')
    await until(() => other.admits() === 'y', 'the other process knows', 1000)
  })

  it('of all models of a line is shared separately from that of a model', async (t) => {
    const [one, other] = processes(t, LONG)
    for (const account of ['x', 'x', 'x', 'x', 'y', 'y', 'y', 'y']) one.state.circuit.fail(account)
    await exchangeAll(one, other)
    assert.deepEqual([one.state.circuit.admits('z'), other.state.circuit.admits('z')], [false, false])
    assert.equal(other.admits(), 'xy')
  })

  it('stays closed if the line has served a call since the first failure in another process', async (t) => {
    const [one, other, third] = processes(t, LONG)
    one.fails('x', 2)
    one.fails('y', 2)
    await sleep(20)
    other.succeeds('z')
    one.fails('x', 2)
    one.fails('y', 2)
    await exchangeAll(one, other, third)
    assert.deepEqual([one.admits(), other.admits(), third.admits()], ['', 'xy', ''])
  })

  it('is sent again to a store that has lost its data', async (t) => {
    let store = new MemoryLineStateStore()
    const losing: LineStateStore = {
      exchange: (notes) => store.exchange(notes),
      watch: (changed) => store.watch(changed),
    }
    const one = processOn(t, losing, LONG)
    one.fails('x')
    await exchangeAll(one)
    store = new MemoryLineStateStore()
    await exchangeAll(one)
    const late = processOn(t, new MemoryLineStateStore(store), LONG)
    await exchangeAll(late)
    assert.equal(late.admits(), 'y')
  })

  it('is known to a process that starts later, for the rest of its time', async (t) => {
    const store = new MemoryLineStateStore()
    const one = processOn(t, new MemoryLineStateStore(store), LONG)
    one.fails('x')
    await exchangeAll(one)
    await sleep(600)
    const late = processOn(t, new MemoryLineStateStore(store), LONG)
    await exchangeAll(late)
    assert.equal(late.admits(), 'y')
    assert.equal(late.circuit.isOpenedByPeer('x'), true)
    const [here, there] = [one, late].map(({ circuit }) => circuit.retryAfterMs('x'))
    assert.ok(here && there && Math.abs(here - there) < 500, `${here} and ${there} ms`)
  })

  it('is tried once by each process after its time, and a failed trial applies in all again', async (t) => {
    const [one, other] = processes(t)
    other.fails('x', 1)
    one.fails('x')
    await exchangeAll(one, other)
    assert.equal(other.admits(), 'y')
    await until(() => one.circuit.state === 'half_open' && other.circuit.state === 'half_open')
    const trial = other.begin('x')
    assert.deepEqual([one.admits(), other.admits()], ['xy', 'y'])
    other.circuit.end(trial, 'x', 'failure')
    await exchangeAll(one, other)
    assert.deepEqual([one.admits(), other.admits()], ['y', 'y'])
    await until(() => one.circuit.state === 'half_open', 'half open', 4 * RESET_MS)
    one.succeeds('x')
    await exchangeAll(one, other)
    assert.equal(one.circuit.state, 'closed')
  })

  it('depends only on the results of each process while the store is away', async (t) => {
    const away: LineStateStore = { exchange: () => Promise.reject(new Error('away')), watch: () => () => {} }
    const one = processOn(t, away, LONG)
    await one.sharing.refresh().catch(() => {})
    one.fails('x')
    await until(() => one.admits() === 'y', 'open by its own failures')
  })
})
