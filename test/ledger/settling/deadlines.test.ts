import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Deadlines, earliest, type WithDeadline } from '../../../lib/ledger/settling/deadlines.ts'
import { StallWatch } from '../../../lib/ledger/settling/stall-watch.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

interface Thing extends WithDeadline<Thing> {
  readonly name: string | number
}

const thing = (name: string | number): Thing => ({ name, deadline: undefined })

/** Counts the timers that are set. */
class CountingClock extends VirtualClock {
  timers = 0

  override after(ms: number, run: () => void): () => void {
    this.timers++
    return super.after(ms, run)
  }
}

function deadlines(ms: number) {
  const clock = new CountingClock()
  const due: [name: string | number, at: number][] = []
  const waited = new Deadlines<Thing>(
    clock,
    () => ms,
    ({ name }) => due.push([name, clock.now()]),
  )
  return { clock, due, waited }
}

describe('the deadline of an answer', () => {
  it('is after its time, each separately, in the order of the requests', async () => {
    const { clock, due, waited } = deadlines(100)
    waited.add(thing('one'))
    await clock.advance(30)
    waited.add(thing('two'))
    waited.add(thing('three'))
    await clock.advance(69)
    assert.deepEqual([due, waited.size], [[], 3])
    await clock.advance(1)
    assert.deepEqual([due, waited.size], [[['one', 100]], 2])
    await clock.advance(1000)
    assert.deepEqual(due.slice(1), [
      ['two', 130],
      ['three', 130],
    ])
    assert.equal(waited.size, 0)
  })

  it('is removed when the answer arrives', async () => {
    const { clock, due, waited } = deadlines(100)
    const things = ['one', 'two', 'three'].map(thing)
    for (const each of things) waited.add(each)
    const [one, two] = things
    assert.ok(one && two)
    waited.delete(two)
    waited.delete(two)
    waited.delete(thing('never added'))
    assert.equal(waited.size, 2)
    waited.delete(one)
    await clock.advance(100)
    assert.deepEqual([due, waited.size], [[['three', 100]], 0])
  })

  it('may be removed while others are being reported, which are still due', async () => {
    const clock = new VirtualClock()
    const things = ['one', 'two', 'three', 'four'].map(thing)
    const due: unknown[] = []
    const waited: Deadlines<Thing> = new Deadlines<Thing>(
      clock,
      () => 100,
      ({ name }) => {
        due.push(name)
        waited.delete(things[2] as Thing)
      },
    )
    for (const each of things) waited.add(each)
    await clock.advance(100)
    assert.deepEqual(due, ['one', 'two', 'four'])
  })

  it('needs one timer for all of them, and the next after that has fired', async () => {
    const { clock, due, waited } = deadlines(100)
    for (let i = 0; i < 50; i++) {
      const one = thing(i)
      waited.add(one)
      waited.delete(one)
    }
    waited.add(thing('last'))
    assert.equal(clock.timers, 1)
    await clock.advance(100)
    assert.deepEqual([due.length, clock.timers], [1, 1])
    waited.add(thing('later'))
    assert.equal(clock.timers, 2)
    await clock.advance(99)
    assert.equal(due.length, 1)
    await clock.advance(1)
    assert.equal(due.length, 2)
  })

  it('is on time also after thousands of answers, and before others that wait', async () => {
    const { clock, due, waited } = deadlines(100)
    const answered = Array.from({ length: 1000 }, (_, i) => thing(i))
    for (const each of answered.slice(0, 500)) waited.add(each)
    waited.add(thing('waits'))
    for (const each of answered.slice(500)) waited.add(each)
    for (const each of answered) waited.delete(each)
    assert.equal(waited.size, 1)
    await clock.advance(50)
    waited.add(thing('waits, too'))
    await clock.advance(100)
    assert.deepEqual(due, [
      ['waits', 100],
      ['waits, too', 150],
    ])
    assert.equal(waited.size, 0)
  })

  it('is the earlier of two', () => {
    assert.deepEqual(
      [earliest(1, 2), earliest(2, 1), earliest(undefined, 2), earliest(1, undefined), earliest(0, 1)],
      [1, 1, 2, 1, 0],
    )
    assert.equal(earliest(undefined, undefined), undefined)
  })
})

function stallWatch() {
  const clock = new CountingClock()
  const waits: number[] = []
  const changes: [stalled: boolean, at: number][] = []
  const watch = new StallWatch({
    clock,
    stallMs: () => 500,
    oldest: () => waits[0],
    onChange: (stalled) => changes.push([stalled, clock.now()]),
  })
  const begin = () => {
    waits.push(clock.now())
    watch.begin()
  }
  return { clock, waits, changes, watch, begin }
}

describe('the watch over waiting charges', () => {
  it('reports once when the oldest has waited for the limit, and once when it no longer does', async () => {
    const { clock, waits, changes, watch, begin } = stallWatch()
    begin()
    await clock.advance(499)
    assert.equal(watch.stalled, false)
    await clock.advance(1)
    assert.equal(watch.stalled, true)
    begin()
    await clock.advance(5000)
    watch.passed()
    waits.length = 0
    watch.passed()
    watch.passed()
    assert.equal(watch.stalled, false)
    assert.deepEqual(changes, [
      [true, 500],
      [false, 5500],
    ])
  })

  it('counts from the arrival of the oldest, not from the start of the watch', async () => {
    const { clock, waits, changes, begin } = stallWatch()
    begin()
    await clock.advance(300)
    waits.length = 0
    begin()
    await clock.advance(499)
    assert.deepEqual(changes, [])
    await clock.advance(1)
    assert.deepEqual(changes, [[true, 800]])
  })

  it('has one timer at a time, and none while nothing waits', async () => {
    const { clock, waits, changes, begin } = stallWatch()
    for (let i = 0; i < 20; i++) begin()
    assert.equal(clock.timers, 1)
    waits.length = 0
    await clock.advance(10_000)
    assert.deepEqual([clock.timers, changes], [1, []])
    begin()
    assert.equal(clock.timers, 2)
  })

  it('does not check each arrival while nothing is stalled', async () => {
    const { clock, changes, watch, begin } = stallWatch()
    begin()
    await clock.advance(499)
    clock.stopFor(100)
    watch.passed()
    assert.deepEqual([changes, clock.timers], [[], 1])
  })

  it('continues with younger charges after the oldest was answered during a stall', async () => {
    const { clock, waits, changes, watch, begin } = stallWatch()
    begin()
    await clock.advance(500)
    waits.length = 0
    waits.push(clock.now() - 100)
    watch.passed()
    await clock.advance(399)
    assert.equal(watch.stalled, false)
    await clock.advance(1)
    assert.deepEqual(
      changes.map(([stalled]) => stalled),
      [true, false, true],
    )
  })
})
