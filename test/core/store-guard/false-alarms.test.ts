import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { StoreAway, StoreGuard } from '../../../lib/core/store-guard/index.ts'
import { recordingLogger } from '../../support/app-server.ts'

const never = () => new Promise<never>(() => {})
const fails = () => Promise.reject(new Error('down'))
const answers = async () => 'here'

function guarded(timeoutMs = 40, probeMs = 60_000) {
  const logger = recordingLogger()
  const guard = new StoreGuard({ name: 'store', logger, timeoutMs, probeMs })
  return { guard, said: () => logger.lines.map(({ message }) => message) }
}

describe('an outage does not begin', () => {
  it('because the process is busy at each step of an operation', async () => {
    const { guard, said } = guarded(100)
    let steps = 0
    // Each step waits for its turn behind 40 ms of other work.
    const operation = async () => {
      for (; steps < 5; steps++) {
        await new Promise((resolve) => setImmediate(resolve))
        const busyUntil = performance.now() + 40
        while (performance.now() < busyUntil);
      }
      return steps
    }
    assert.equal(await guard.run(operation), 5)
    assert.deepEqual(said(), [])
  })

  it('because one operation is late while others are answered', async () => {
    const { guard, said } = guarded()
    const late = guard.run(never)
    await guard.run(answers)
    await assert.rejects(late, StoreAway)
    assert.equal(guard.away, false)
    assert.equal(await guard.run(answers), 'here')
    assert.deepEqual(said(), [])
  })

  it('because of a retried operation, which can end an outage', async () => {
    const { guard, said } = guarded(40, 0)
    await assert.rejects(guard.retry(fails), StoreAway)
    assert.equal(guard.away, false)
    await assert.rejects(guard.run(fails), StoreAway)
    await assert.rejects(guard.retry(fails), StoreAway)
    assert.equal(guard.away, true)
    assert.equal(await guard.retry(answers), 'here')
    assert.deepEqual(said(), ['store is away', 'store is back'])
  })
})

it('an insisted operation is sent while the store is away, and no other operation is', async () => {
  const { guard } = guarded()
  await assert.rejects(guard.run(fails), StoreAway)
  let asked = 0
  const ask = async () => ++asked
  await assert.rejects(guard.run(ask), StoreAway)
  await assert.rejects(guard.retry(ask), StoreAway)
  assert.equal(asked, 0)
  assert.equal(await guard.insist(ask), 1)
  assert.equal(guard.away, false)
})
