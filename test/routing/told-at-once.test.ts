import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../support/until.ts'
import { telling } from './telling-process.ts'

describe('a process tells at once', () => {
  it('that a circuit has opened, and a single failure with what comes within 50 ms', async (t) => {
    const { process, exchanges } = telling(t)
    await process.sharing.refresh()
    let before = exchanges()
    process.fails('x')
    await sleep(5)
    assert.equal(exchanges(), before)
    await until(() => exchanges() > before)
    before = exchanges()
    process.fails('x', 3)
    await sleep(20)
    assert.equal(exchanges(), before + 1)
  })

  it('that a probe begins, and that it has failed or ended', async (t) => {
    const { process, exchanges } = telling(t, 30)
    const { circuit } = process
    process.fails('x', 4)
    await process.sharing.refresh()
    for (const end of ['fail', 'skip'] as const) {
      await until(() => circuit.state === 'half_open')
      await sleep(60)
      const before = exchanges()
      const probe = process.enter('x')
      await until(() => exchanges() > before)
      await sleep(60)
      const begun = exchanges()
      if (end === 'fail') circuit.fail(probe, 'x')
      else circuit.skip(probe)
      await until(() => exchanges() > begun, end, 1000)
    }
  })

  it('that a rest begins, and that it is lifted', async (t) => {
    const { process, exchanges } = telling(t)
    for (const change of [() => process.model.rest(5000), () => process.model.lift()]) {
      const before = exchanges()
      change()
      await until(() => exchanges() > before, 'an exchange', 1000)
    }
  })
})
