import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { type LineNote, type LineStateStore, MemoryLineStateStore } from '../../lib/middleware/route/index.ts'
import { exchangeAll, processOn } from './line-processes.ts'

const WINDOW_MS = 10_000
const SETTINGS = { resetMs: 20_000, windowMs: WINDOW_MS }

/** A process on a clock that the test sets, and what it leaves at each exchange. */
function telling(t: TestContext) {
  let now = 1_000_000
  t.mock.method(performance, 'now', () => now)
  const store = new MemoryLineStateStore()
  let left: LineNote[] = []
  const recording: LineStateStore = {
    exchange: (notes) => {
      left.push(...notes)
      return store.exchange(notes)
    },
    watch: (changed) => store.watch(changed),
  }
  const process = processOn(t, recording, SETTINGS)
  const other = processOn(t, new MemoryLineStateStore(store), SETTINGS)
  return {
    process,
    other,
    pass(ms: number): void {
      now += ms
    },
    /** The notes of one exchange: their kind, life and condition. */
    async told(): Promise<[kind: string | undefined, lifeMs: number, when: string][]> {
      left = []
      await process.sharing.refresh()
      return left.map(({ id, lifeMs, when }) => [id.split(' ')[0], lifeMs, when])
    },
  }
}

describe('what a process tells the others', () => {
  it('are its failures, in every exchange, until the window is over; then that there are none, once', async (t) => {
    const { process, told, pass } = telling(t)
    assert.deepEqual(await told(), [], 'nothing has happened')
    process.fails('x')
    const failures = [['counts', WINDOW_MS, 'always']]
    assert.deepEqual(await told(), failures)
    pass(WINDOW_MS / 2)
    assert.deepEqual(await told(), failures)
    pass(WINDOW_MS)
    assert.deepEqual(await told(), [['counts', 0, 'always']])
    assert.deepEqual(await told(), [])
  })

  it('is that a circuit has opened, once, and that its failures are told no more', async (t) => {
    const { process, told } = telling(t)
    process.fails('x', 2)
    await told()
    process.fails('x', 2)
    assert.deepEqual(await told(), [
      ['circuit', SETTINGS.resetMs + 600_000, 'unchanged'],
      ['counts', 0, 'always'],
    ])
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
    await process.sharing.refresh()
    assert.equal(process.model.restMs, 0)
  })

  it('is what concerns all models of a line, too', async (t) => {
    const { process, other } = telling(t)
    for (const account of ['x', 'y'])
      for (let i = 0; i < 2; i++) process.state.circuit.fail(process.state.circuit.enter(account), account)
    await exchangeAll(process, other)
    assert.deepEqual([process.state.circuit.admits('z'), other.state.circuit.admits('z')], [false, false])
    assert.equal(other.admits(), 'xy', 'the circuit of a model is another')
  })
})
