import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { momentOf, systemClock } from '../../../lib/ledger/pool/clock.ts'

/** Timers that keep this process alive. */
const keeping = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

describe('the clock of the machine', () => {
  it('keeps the process alive for a timer only on request', () => {
    const before = keeping()
    const callOff = [systemClock.after(60_000, () => {}), systemClock.after(60_000, () => {}, false)]
    assert.equal(keeping(), before)
    callOff.push(systemClock.after(60_000, () => {}, true))
    assert.equal(keeping(), before + 1)
    for (const each of callOff) each()
    assert.equal(keeping(), before)
  })

  it('runs a timer in the turn after its time, unless it is cancelled, even in that turn', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    let times = 0
    const note = () => void times++
    systemClock.after(10, note)
    const callOff = systemClock.after(10, note)
    systemClock.after(10, note)()
    t.mock.timers.tick(9)
    await new Promise(setImmediate)
    assert.equal(times, 0)
    t.mock.timers.tick(1)
    assert.equal(times, 0, 'what has come by then is read first')
    callOff()
    await new Promise(setImmediate)
    assert.equal(times, 1)
  })

  it('returns the time since the epoch, and a monotonic time', (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: 1234 })
    const before = performance.now()
    const { now, wall } = momentOf(systemClock)
    assert.equal(wall, 1234)
    assert.ok(now >= before && now <= performance.now())
  })
})
