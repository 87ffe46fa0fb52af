import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type LineStateStore, MemoryLineStateStore } from '../../lib/middleware/route/index.ts'
import type { CircuitEntry } from '../../lib/routing/lines/circuit.ts'
import { until } from '../support/until.ts'
import { exchangeAll, type Process, processes, processOn, RESET_MS } from './line-processes.ts'

/** What no process learns by a timer of the circuit. */
const LONG = { resetMs: 20_000 }

describe('a circuit of several processes', () => {
  const failures: [name: string, failed: [account: string, times: number][], admitted: string][] = [
    ['of one account, in one process', [['x', 4]], 'y'],
    [
      'of one account, in two',
      [
        ['x', 2],
        ['x', 2],
      ],
      'y',
    ],
    [
      'of one account, in three, too few',
      [
        ['x', 1],
        ['x', 1],
        ['x', 1],
      ],
      'xy',
    ],
    [
      'of two accounts, in one each',
      [
        ['x', 2],
        ['y', 2],
      ],
      '',
    ],
    [
      'of two accounts, in three processes',
      [
        ['x', 1],
        ['y', 1],
        ['x', 2],
      ],
      '',
    ],
  ]
  for (const [name, failed, admitted] of failures)
    it(`opens by the failures ${name}, for whom they are of`, async (t) => {
      const all = processes(t, LONG)
      for (const [i, [account, times]] of failed.entries()) all[i]?.fails(account, times)
      await exchangeAll(...all)
      assert.deepEqual(
        all.map(({ admits }) => admits()),
        [admitted, admitted, admitted],
      )
    })

  it('does not open where most attempts of other processes went well', async (t) => {
    const [one, other] = processes(t, LONG)
    one.fails('x', 2)
    other.fails('x')
    for (let i = 0; i < 5; i++) other.succeeds('x')
    one.fails('x')
    await exchangeAll(one, other)
    assert.deepEqual([one.admits(), other.admits()], ['xy', 'xy'])
    one.fails('x', 4)
    await exchangeAll(one, other)
    assert.deepEqual([one.admits(), other.admits()], ['y', 'y'])
  })

  it('that opens in two at once, for different accounts, is open for all', async (t) => {
    const [one, other, third] = processes(t, LONG)
    one.fails('x', 4)
    other.fails('y', 4)
    assert.deepEqual([one.admits(), other.admits()], ['y', 'x'])
    await exchangeAll(one, other, third)
    assert.deepEqual([one.admits(), other.admits(), third.admits()], ['', '', ''])
  })

  it('that opens in two at once, for the same account, is open for that one', async (t) => {
    const [one, other, third] = processes(t, LONG)
    one.fails('x', 4)
    other.fails('x', 4)
    await exchangeAll(one, other, third)
    assert.deepEqual([one.admits(), other.admits(), third.admits()], ['y', 'y', 'y'])
  })

  it('stays closed where the line has served since the failures of another process', async (t) => {
    const [one, other, third] = processes(t, LONG)
    one.fails('x', 2)
    await sleep(20)
    other.succeeds('x')
    one.fails('y', 2)
    await exchangeAll(one, other, third)
    assert.deepEqual([one.admits(), other.admits(), third.admits()], ['', 'xy', ''])
  })

  it('that is open for one account opens for all with it, even where the line had served before', async (t) => {
    const [one, other] = processes(t, LONG)
    one.fails('x', 2)
    await sleep(20)
    other.succeeds('y')
    one.fails('x', 2)
    await exchangeAll(one, other)
    assert.deepEqual([one.admits(), other.admits()], ['y', 'y'])
    one.fails('y')
    await exchangeAll(one, other)
    assert.deepEqual([one.admits(), other.admits()], ['', ''])
  })

  it('is told again to a store that has lost what it knew', async (t) => {
    let store = new MemoryLineStateStore()
    const losing: LineStateStore = {
      exchange: (notes) => store.exchange(notes),
      watch: (changed) => store.watch(changed),
    }
    const one = processOn(t, losing, LONG)
    one.fails('x', 4)
    await exchangeAll(one)
    store = new MemoryLineStateStore()
    await exchangeAll(one)
    const late = processOn(t, new MemoryLineStateStore(store), LONG)
    await exchangeAll(late)
    assert.equal(late.admits(), 'y')
  })

  it('is known to a process that starts later, for what is left of its time', async (t) => {
    const store = new MemoryLineStateStore()
    const one = processOn(t, new MemoryLineStateStore(store), LONG)
    one.fails('x', 2)
    one.fails('y', 2)
    await exchangeAll(one)
    await sleep(300)
    const late = processOn(t, new MemoryLineStateStore(store), LONG)
    await exchangeAll(late)
    assert.equal(late.admits(), '')
    assert.equal(late.circuit.isFollowing, true)
    const [here, there] = [one, late].map(({ circuit }) => circuit.opening?.leftMs ?? 0)
    assert.ok(here && there && Math.abs(here - there) < 200, `${here} and ${there} ms`)
  })

  it('is probed by one process at a time, and closes in all', async (t) => {
    const [one, other, third] = processes(t)
    one.fails('x', 2)
    one.fails('y', 2)
    await exchangeAll(one, other, third)
    await sleep(RESET_MS + 50)
    const probe = one.enter('x')
    await exchangeAll(one, other, third)
    assert.deepEqual([other.admits(), third.admits()], ['', ''])
    one.circuit.succeed(probe)
    await until(() => other.admits() + third.admits() === 'xyxy', 'the others know at once', 2000)
    assert.deepEqual([one.circuit.state, other.circuit.state], ['closed', 'closed'])
  })

  it('whose probe failed is open again, in all, for its account; others may probe', async (t) => {
    const [one, other] = processes(t)
    one.fails('x', 2)
    one.fails('y', 2)
    await exchangeAll(one, other)
    await sleep(RESET_MS + 50)
    one.circuit.fail(one.enter('x'), 'x')
    await exchangeAll(one, other)
    assert.deepEqual([one.admits(), other.admits()], ['y', 'y'])
    const probe = other.enter('y')
    await exchangeAll(one, other)
    assert.equal(one.admits(), '', 'one at a time')
    other.circuit.succeed(probe)
    await exchangeAll(one, other)
    assert.deepEqual([one.admits(), other.admits()], ['xy', 'xy'])
  })

  const turns: [name: string, turn: (one: Process, probe: CircuitEntry) => void, admitted: string][] = [
    ['its probe fails', (one, probe) => one.circuit.fail(probe, 'x'), 'y'],
    ['its probe goes well', (one, probe) => one.circuit.succeed(probe), 'xy'],
    ['its probe has no verdict', (one, probe) => one.circuit.skip(probe), 'y'],
    ['another account fails', (one) => one.fails('y'), ''],
  ]
  for (const [name, turn, admitted] of turns)
    it(`that turns in one process while it asks the others turns in all: ${name}`, async (t) => {
      const store = new MemoryLineStateStore()
      let meanwhile = (): void => {}
      const asking: LineStateStore = {
        async exchange(notes) {
          const standing = await store.exchange(notes)
          meanwhile()
          return standing
        },
        watch: (changed) => store.watch(changed),
      }
      const one = processOn(t, asking)
      const other = processOn(t, new MemoryLineStateStore(store))
      one.fails('x', 4)
      await exchangeAll(one, other)
      await sleep(RESET_MS + 50)
      const probe = one.enter('x')
      await exchangeAll(one)
      meanwhile = () => {
        meanwhile = () => {}
        turn(one, probe)
      }
      await exchangeAll(one, other)
      assert.deepEqual([one.admits(), other.admits()], [admitted, admitted])
    })

  for (const first of ['which finds it ill', 'which closes it'])
    it(`that one process closes while another finds it ill again is open for whom it failed; the one tells first ${first}`, async (t) => {
      const [one, other] = processes(t)
      one.fails('x', 2)
      one.fails('y', 2)
      await exchangeAll(one, other)
      await sleep(RESET_MS + 50)
      const [good, bad] = [one.enter('x'), other.enter('y')]
      one.circuit.succeed(good)
      other.circuit.fail(bad, 'y')
      await exchangeAll(...(first === 'which closes it' ? [one, other] : [other, one]))
      assert.deepEqual([one.admits(), other.admits()], ['x', 'x'])
    })

  it('that several find ill again at once is open for all, and a probe that still runs does not close it', async (t) => {
    const [one, other] = processes(t)
    one.fails('x', 2)
    one.fails('y', 2)
    await exchangeAll(one, other)
    await sleep(RESET_MS + 50)
    const [bad, alsoBad] = [one.enter('x'), other.enter('y')]
    one.circuit.fail(bad, 'x')
    other.circuit.fail(alsoBad, 'y')
    const running = one.enter('z')
    await exchangeAll(other, one)
    assert.deepEqual([one.admits(), other.admits()], ['', ''])
    one.circuit.succeed(running)
    assert.equal(one.circuit.state, 'open')
  })

  it('goes by what a process finds itself while the store is away', async (t) => {
    const board = new MemoryLineStateStore()
    const [here, there] = [new MemoryLineStateStore(board), new MemoryLineStateStore(board)]
    let isAway = false
    const leaving: LineStateStore = {
      exchange: (notes) => (isAway ? Promise.reject(new Error('away')) : here.exchange(notes)),
      watch: (changed) => here.watch(changed),
    }
    const [one, other] = [processOn(t, leaving, LONG), processOn(t, there, LONG)]
    one.fails('x')
    other.fails('x', 2)
    await exchangeAll(one, other)
    isAway = true
    await one.sharing.refresh().catch(() => {})
    assert.equal(one.sharing.isAlone, true)
    one.fails('x')
    assert.equal(one.admits(), 'xy', 'what others have counted is no news any more')
    one.fails('x', 2)
    assert.equal(one.admits(), 'y')
  })
})
