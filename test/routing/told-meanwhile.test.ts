import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { until } from '../support/until.ts'
import { telling, WINDOW_MS } from './telling-process.ts'

const COUNTS = ['counts', WINDOW_MS, 'always']

describe('what happens to a line while a process tells the others of it', () => {
  it('is told next: a first failure', async (t) => {
    const { process, told, during } = telling(t)
    process.model.rest(1000)
    during(() => process.fails('x'))
    await told()
    assert.deepEqual(await told(), [COUNTS])
  })

  it('is told next: that the window of the failures is over', async (t) => {
    const { process, told, during, pass } = telling(t)
    process.fails('x')
    during(() => pass(WINDOW_MS))
    assert.deepEqual(await told(), [COUNTS])
    assert.deepEqual(await told(), [['counts', 0, 'always']])
  })

  it('is told next: a longer rest', async (t) => {
    const { process, told, during, other } = telling(t)
    process.model.rest(5000)
    during(() => process.model.rest(15_000))
    await told()
    assert.deepEqual(await told(), [['rest', 45_000, 'longer']])
    await other.sharing.refresh()
    assert.equal(other.model.restMs, 15_000)
  })

  it('does not make its own rest longer', async (t) => {
    const { process, told, during, pass } = telling(t)
    process.model.rest(15_000)
    during(() => pass(4000))
    await told()
    assert.equal(process.model.restMs, 11_000)
  })

  for (const whose of ['holder', 'others'] as const)
    it(`is told next: a probe, of one of the ${whose}`, async (t) => {
      const { process, told, during } = telling(t, 30)
      const { circuit } = process
      for (const account of ['x', 'y']) process.fails(account, 2)
      await until(() => circuit.state === 'half_open')
      if (whose === 'others') circuit.fail(process.enter('x'), 'x')
      await told()
      process.model.rest(1000)
      during(() => void process.enter('y'))
      await told()
      assert.deepEqual(await told(), [[`probe ${whose}`, 3000, 'free']])
    })

  it('is told next: that the circuit has closed, which does not open again', async (t) => {
    const { process, told, during, other } = telling(t, 30)
    const { circuit } = process
    for (const account of ['x', 'y']) process.fails(account, 2)
    during(async () => {
      await until(() => circuit.state === 'half_open')
      circuit.succeed(process.enter('x'))
    })
    await told()
    assert.equal(circuit.state, 'closed')
    await told()
    await other.sharing.refresh()
    assert.deepEqual([process.admits(), other.admits()], ['xy', 'xy'])
  })
})

describe('a store that has lost what it knew', () => {
  it('is told of an open circuit by a process that has it from another', async (t) => {
    const { process, other, told, lose } = telling(t)
    other.fails('x', 4)
    await other.sharing.refresh()
    await told()
    assert.equal(process.admits(), 'y')
    lose()
    await told()
    assert.deepEqual(await told(), [['circuit', 620_000, 'unchanged']])
    assert.deepEqual(await told(), [])
  })

  it('is told of a circuit that has turned again meanwhile', async (t) => {
    const { process, told, lose } = telling(t)
    process.fails('x', 4)
    await told()
    lose()
    for (const account of ['y', 'y']) process.fails(account)
    assert.equal(process.admits(), '')
    await told()
    await told()
    assert.deepEqual(await told(), [])
    assert.equal(process.admits(), '')
  })

  it('is not told of one that is closed', async (t) => {
    const { process, told, lose } = telling(t, 30)
    process.fails('x', 4)
    await until(() => process.circuit.state === 'half_open')
    process.circuit.succeed(process.enter('x'))
    await told()
    assert.deepEqual(await told(), [])
    lose()
    await told()
    assert.deepEqual(await told(), [])
  })
})
