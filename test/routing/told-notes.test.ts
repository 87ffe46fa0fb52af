import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../support/until.ts'
import { exchangeAll } from './line-processes.ts'
import { telling, WINDOW_MS } from './telling-process.ts'

describe('what a process tells the others', () => {
  it('are its failures, in every exchange, until the window is over; then that there are none, once', async (t) => {
    const { process, told, pass, exchanges } = telling(t)
    assert.deepEqual(await told(), [], 'nothing has happened')
    process.fails('x')
    const failures = [['counts', WINDOW_MS, 'always']]
    assert.deepEqual(await told(), failures)
    pass(WINDOW_MS / 2)
    assert.deepEqual(await told(), failures)
    pass(WINDOW_MS)
    assert.deepEqual(await told(), [['counts', 0, 'always']])
    assert.deepEqual(await told(), [])
    const before = exchanges()
    await sleep(20)
    assert.equal(exchanges(), before, 'it asks for nothing either')
  })

  it('is that a circuit has opened, once, and that its failures are told no more', async (t) => {
    const { process, told } = telling(t)
    process.fails('x', 2)
    await told()
    process.fails('x', 2)
    assert.deepEqual(await told(), [
      ['circuit', 620_000, 'unchanged'],
      ['counts', 0, 'always'],
    ])
    assert.deepEqual(await told(), [])
  })

  for (const whose of ['holder', 'others'] as const)
    it(`is that a probe runs, in every exchange, until it has ended; it is one of the ${whose}`, async (t) => {
      const { process, told } = telling(t, 30)
      const { circuit } = process
      for (const account of ['x', 'y']) process.fails(account, 2)
      await until(() => circuit.state === 'half_open')
      if (whose === 'others') circuit.fail(process.enter('x'), 'x')
      await told()
      const probe = process.enter('y')
      const running = [`probe ${whose}`, 3000, 'free']
      for (let times = 0; times < 3; times++) assert.deepEqual(await told(), [running])
      circuit.succeed(probe)
      assert.deepEqual((await told()).at(-1), [`probe ${whose}`, 0, 'free'])
      assert.deepEqual(await told(), [])
    })

  it('is a rest, once, for what is left of it and half a minute; then that it was lifted, once', async (t) => {
    const { process, told, pass } = telling(t)
    process.model.rest(15_000)
    assert.deepEqual(await told(), [['rest', 45_000, 'longer']])
    assert.deepEqual(await told(), [])
    pass(5000)
    process.model.lift()
    assert.deepEqual(await told(), [['rest', 0, 'unchanged']])
    assert.deepEqual(await told(), [])
    process.model.lift()
    assert.deepEqual(await told(), [], 'there is none to lift')
  })

  it('does not bring a rest back that was lifted while another process rested for longer', async (t) => {
    const { process, other } = telling(t)
    process.model.rest(5000)
    await exchangeAll(process, other)
    other.model.rest(15_000)
    await other.sharing.refresh()
    process.model.lift()
    for (let times = 0; times < 3; times++) {
      await process.sharing.refresh()
      assert.equal(process.model.restMs, 0)
    }
  })

  it('is what concerns all models of a line, too', async (t) => {
    const { process, other } = telling(t)
    const { circuit } = process.state
    for (const account of ['x', 'x', 'y', 'y']) circuit.fail(circuit.enter(account), account)
    await exchangeAll(process, other)
    assert.deepEqual([circuit.admits('z'), other.state.circuit.admits('z')], [false, false])
    assert.equal(other.admits(), 'xy', 'the circuit of a model is another')
  })

  it('is told at the first exchange of another', async (t) => {
    const { process, other } = telling(t)
    process.fails('x', 4)
    process.model.rest(15_000)
    await process.sharing.refresh()
    await other.sharing.refresh()
    assert.deepEqual([other.admits(), other.model.restMs], ['y', 15_000])
  })
})
