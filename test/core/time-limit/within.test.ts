import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { STOOD_STILL_MS, within } from '../../../lib/core/time-limit/index.ts'

const NEVER = new Promise<string>(() => {})

function timers(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length
}

describe('a wait for a limited time', () => {
  it('returns the value of the promise and leaves no timer', async () => {
    const before = timers()
    assert.equal(
      await within(60_000, Promise.resolve('value'), () => assert.fail('it was not late')),
      'value',
    )
    assert.equal(timers(), before)
  })

  it('rejects as the promise does and leaves no timer', async () => {
    const before = timers()
    const broken = Promise.reject(new Error('broken'))
    await assert.rejects(
      within(60_000, broken, () => 'late'),
      { message: 'broken' },
    )
    assert.equal(timers(), before)
  })

  it('returns what onLate returns when the time is up', async () => {
    assert.equal(await within(1, NEVER, () => 'late'), 'late')
  })

  it('rejects with what onLate throws when the time is up', async () => {
    const late = () => {
      throw new Error('too late')
    }
    await assert.rejects(within(1, NEVER, late), { message: 'too late' })
  })

  it('begins once more after a standstill of the process, for what stood still with it', async () => {
    const standStill = () => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STOOD_STILL_MS + 300)
    }
    setImmediate(standStill)
    const slow = within(250, sleep(STOOD_STILL_MS + 350, 'value'), () => 'late')
    assert.deepEqual(await Promise.all([slow, within(250, NEVER, () => 'late')]), ['value', 'late'])
  })
})
