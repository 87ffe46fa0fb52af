import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { IntentGate, NotStarted } from '../../../../lib/endpoints/video/creates/intent-gate.ts'

/** Operations that end when the test says so. */
function operations() {
  const begun: PromiseWithResolvers<void>[] = []
  const operate = (): Promise<void> => {
    const ending = Promise.withResolvers<void>()
    begun.push(ending)
    return ending.promise
  }
  return { begun, operate }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))
const locked = new Error('locked')

describe('the creates of one account', () => {
  it('begin two at a time, the others in their order, and those of another account beside them', async () => {
    const gate = new IntentGate()
    const { begun, operate } = operations()
    const all = Array.from({ length: 4 }, () => gate.run('loud', operate))
    await turn()
    assert.equal(begun.length, 2)
    const other = gate.run('quiet', async () => 'done')
    assert.equal(await other, 'done')
    begun[0]?.resolve()
    await all[0]
    await turn()
    assert.equal(begun.length, 3)
    for (const i of [1, 2, 3]) {
      begun[i]?.resolve()
      await all[i]
      await turn()
    }
    assert.equal(begun.length, 4)
  })

  it('are not begun behind one that failed, but for one at a time that tries', async () => {
    const gate = new IntentGate()
    const { begun, operate } = operations()
    const all = Array.from({ length: 4 }, () => gate.run('loud', operate))
    const outcomes = Promise.allSettled(all)
    await turn()
    for (const one of begun) one.reject(locked)
    const reasons = (await outcomes).map((outcome) => (outcome as PromiseRejectedResult).reason)
    assert.deepEqual(reasons.slice(0, 2), [locked, locked])
    assert.ok(reasons.slice(2).every((reason) => reason instanceof NotStarted))
    const trying = gate.run('loud', operate)
    await assert.rejects(gate.run('loud', operate), NotStarted)
    assert.equal(begun.length, 3)
    begun[2]?.resolve()
    await trying
    const after = [gate.run('loud', operate), gate.run('loud', operate)]
    assert.equal(begun.length, 5)
    for (const one of begun) one.resolve()
    await Promise.all(after)
  })

  it('try for two accounts at a time, whose creates have failed, however many there are', async () => {
    const gate = new IntentGate()
    const accounts = ['a', 'b', 'c', 'd']
    for (const account of accounts)
      await assert.rejects(
        gate.run(account, () => Promise.reject(locked)),
        locked,
      )
    const { begun, operate } = operations()
    const trying = Promise.allSettled(accounts.map((account) => gate.run(account, operate)))
    await turn()
    assert.equal(begun.length, 2)
    for (const one of begun) one.resolve()
    const reasons = (await trying).map((outcome) => outcome.status)
    assert.deepEqual(reasons, ['fulfilled', 'fulfilled', 'rejected', 'rejected'])
  })

  it('are not begun after a second in which the store says nothing', { timeout: 10_000 }, async () => {
    const gate = new IntentGate()
    const { begun, operate } = operations()
    const silent = [gate.run('loud', operate), gate.run('loud', operate)]
    await assert.rejects(gate.run('loud', operate), NotStarted)
    assert.equal(begun.length, 2)
    for (const one of begun) one.resolve()
    await Promise.all(silent)
    await gate.run('loud', async () => {})
  })
})
