import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallEnding, OpenCall } from '../../../lib/core/call/index.ts'
import { opened } from './opened-call.ts'

const ENDING = { outcome: { status: 200, errorCode: null, finish: 'completed' }, unsent: null } as const
const timed = ({ settling }: OpenCall) => settling ?? undefined

describe('the charge of a handler', () => {
  const billed = (charged: bigint | null = null) => {
    const { call } = opened()
    const none = { reserved: null, cost: null, required: null, available: null, items: [], own: undefined }
    call.billing = { ...none, charged }
    return call
  }

  it('adds up, as decimals or billionths', () => {
    const call = billed()
    call.charge('0.015')
    assert.equal(call.billing?.own, 15_000_000n)
    call.charge(5n)
    call.charge(0n)
    assert.equal(call.billing?.own, 15_000_005n)
  })

  it('is refused if it is not an amount, or the usage is already written', () => {
    const own = (call: OpenCall) => call.billing?.own
    for (const amount of [0.5, 1, null, {}]) assert.throws(() => billed().charge(amount as never), TypeError)
    for (const amount of [-1n, '-0.1', 'much']) {
      const call = billed()
      assert.throws(() => call.charge(amount), RangeError)
      assert.equal(own(call), undefined)
    }
    assert.throws(() => opened().call.charge('1'), /mount billingGuard/)
    const settled = billed(0n)
    assert.throws(() => settled.charge('1'), /settled already/)
    assert.equal(own(settled), undefined)
  })
})

describe('the checks of a call', () => {
  it('run in order each time, until one throws', () => {
    const { call } = opened()
    call.assertOwnsClaim()
    const ran: string[] = []
    let lost = false
    call.onAssertOwnsClaim(() => void ran.push('first'))
    call.onAssertOwnsClaim(() => {
      ran.push('second')
      if (lost) throw new Error('lost')
    })
    call.onAssertOwnsClaim(() => void ran.push('third'))
    call.assertOwnsClaim()
    lost = true
    assert.throws(() => call.assertOwnsClaim(), /lost/)
    assert.deepEqual(ran, ['first', 'second', 'third', 'first', 'second'])
  })
})

describe('the settlement of a call', () => {
  it('runs once, in order, and is timed', async () => {
    const { call } = opened()
    assert.equal(call.settle(ENDING), undefined)
    assert.equal(timed(call), undefined)
    const ran: unknown[] = []
    const go = Promise.withResolvers<void>()
    const note = (name: string) => (ending: CallEnding) => void ran.push(name, ending)
    call.onSettle((ending) => note('first')(ending) as undefined)
    call.onSettle((ending) => {
      note('second')(ending)
      return go.promise
    })
    call.onSettle((ending) => note('third')(ending) as undefined)
    const settled = call.settle(ENDING)
    await new Promise(setImmediate)
    assert.deepEqual(ran, ['first', ENDING, 'second', ENDING])
    assert.equal(timed(call)?.endedAt, null)
    go.resolve()
    await settled
    assert.deepEqual(ran.slice(4), ['third', ENDING])
    assert.ok((timed(call)?.endedAt ?? 0) >= (timed(call)?.startedAt ?? Number.NaN))
    assert.equal(call.settle(ENDING), undefined)
    assert.equal(ran.length, 6)
  })

  it('is timed also if it fails', async () => {
    const { call } = opened()
    call.onSettle(() => Promise.reject(new Error('away')))
    await assert.rejects(call.settle(ENDING) ?? assert.fail(), /away/)
    assert.notEqual(timed(call)?.endedAt ?? null, null)
  })
})

describe('the work before the last byte', () => {
  it('happens once, and the call waits until all of it is done', async () => {
    const { call } = opened()
    assert.equal(call.prepareLastByte(), undefined)
    const go = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let ran = 0
    for (const { promise } of go)
      call.onLastByte(() => {
        ran++
        return promise
      })
    call.onLastByte(() => undefined)
    let over = false
    const waiting = call.prepareLastByte()?.then(() => {
      over = true
    })
    assert.equal(call.prepareLastByte() === undefined, false)
    go[0]?.resolve()
    await new Promise(setImmediate)
    assert.deepEqual([ran, over], [2, false])
    go[1]?.resolve()
    await waiting
    assert.deepEqual([ran, over], [2, true])
  })

  it('causes no wait if nothing is asynchronous', () => {
    const { call } = opened()
    let ran = 0
    call.onLastByte(() => void ran++ as undefined)
    assert.deepEqual([call.prepareLastByte(), call.prepareLastByte(), ran], [undefined, undefined, 1])
  })

  it('begins with the settlement if only a small last part is unsent', () => {
    const begins = (unsent: CallEnding['unsent'], settles = true) => {
      const { call } = opened()
      let ran = 0
      call.onLastByte(() => void ran++ as undefined)
      if (settles) call.onSettle(() => undefined)
      void call.settle({ ...ENDING, unsent })
      return ran === 1
    }
    assert.deepEqual(
      [begins('x'), begins('x'.repeat(16 * 1024)), begins(Buffer.alloc(16 * 1024))],
      [true, true, true],
    )
    assert.deepEqual(
      [begins('x'.repeat(16 * 1024 + 1)), begins(null), begins('x', false)],
      [false, false, false],
    )
  })
})

describe('a caller that leaves', () => {
  it('is reported once, in the order in which the listeners were added', async () => {
    const { call, res } = opened()
    const told: string[] = []
    for (const name of ['first', 'second', 'third']) call.onLeave(() => void told.push(name))
    const over = new Promise((resolve) => call.onEnd('end', () => resolve(undefined)))
    res.emit('close')
    await over
    res.emit('close')
    assert.deepEqual([told, call.left], [['first', 'second', 'third'], true])
  })
})
