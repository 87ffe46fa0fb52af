import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { machine } from '../../../lib/core/timing/index.ts'

/** Keeps this process from its timers, as others do on a busy machine, and gives it back every 60 ms. */
async function busy(ms: number): Promise<void> {
  for (const until = performance.now() + ms; performance.now() < until; ) {
    const block = performance.now() + 60
    while (performance.now() < block);
    await sleep(1)
  }
}

describe('a time limit on a busy machine', () => {
  it('is longer, and at most eight times as long', async () => {
    machine.limit(250)
    await busy(500)
    assert.ok(machine.limit(250) > 500)
    assert.equal(machine.limit(10), 80)
    await busy(2000)
    assert.equal(machine.limit(250), 2000)
  })
})
