import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Logger } from '../../../lib/core/call/index.ts'
import { catchRejection, checkedFunction, errorOf, notify, settled } from '../../../lib/core/options/index.ts'

const aList = { be: 'a list', accepts: (value: unknown) => Array.isArray(value) }

describe('a function of the app', () => {
  it('is refused for an invalid result, also after valid ones', () => {
    const good = [1]
    const given: unknown[] = [good, good, 'nonsense', good, undefined, Promise.resolve(good), [2]]
    const own = checkedFunction('"own"', aList, (i: number) => given[i])
    assert.equal(own(0), good)
    assert.equal(own(1), good)
    assert.throws(() => own(2), new TypeError('"own" must return a list, not a string'))
    assert.equal(own(3), good)
    assert.throws(() => own(4), TypeError)
    assert.throws(() => own(5), new TypeError('"own" must return a list, not a promise of it'))
    assert.deepEqual(own(6), [2])
  })
})

const boom = new Error('boom')
const turn = () => new Promise((resolve) => setImmediate(resolve))
/** Values that Express would not take for an error. */
const NO_ERRORS: [thrown: unknown, kind: string][] = [
  [undefined, 'undefined'],
  [null, 'null'],
  ['route', 'a string'],
  ['router', 'a string'],
  [7, 'the number 7'],
]
const noError = (kind: string) => new TypeError(`"own" threw ${kind} in place of an error`)

describe('an error thrown by a function of the app', () => {
  it('is wrapped in an Error if it is not one', () => {
    const strange = { status: 400 }
    assert.deepEqual([errorOf('"own"', boom), errorOf('"own"', strange)], [boom, strange])
    for (const [thrown, kind] of NO_ERRORS) assert.deepEqual(errorOf('"own"', thrown), noError(kind))
  })

  it('is thrown as an Error when its result is checked, or awaited', async () => {
    for (const [thrown, kind] of [...NO_ERRORS, [boom, 'boom'] as const]) {
      const expected = thrown === boom ? boom : noError(kind)
      const throwing = checkedFunction('"own"', { be: 'a thing', accepts: () => true }, () => {
        throw thrown
      })
      assert.throws(throwing, expected)
      await assert.rejects(async () => settled('"own"', () => Promise.reject(thrown)), expected)
      assert.throws(() => {
        void settled('"own"', () => {
          throw thrown
        })
      }, expected)
    }
  })
})

describe('an answer of a function of the app', () => {
  it('may be a promise or a value', async () => {
    assert.equal(
      settled('"own"', () => 7),
      7,
    )
    assert.equal(await settled('"own"', () => Promise.resolve(8)), 8)
  })

  it('is not awaited for more than ten seconds', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const ended: unknown[] = []
    const late = settled('"own"', () => new Promise(() => {}))
    const answer = Promise.resolve(late).catch((error: Error) => void ended.push(error.message))
    t.mock.timers.tick(9_999)
    await turn()
    assert.deepEqual(ended, [])
    t.mock.timers.tick(1)
    await answer
    assert.deepEqual(ended, ['"own" did not answer in 10000 ms'])
  })

  it('is refused as a promise, even if its value would be valid', () => {
    const own = checkedFunction('"own"', { be: 'a thing', accepts: () => true }, (given: unknown) => given)
    assert.deepEqual([own(undefined), own(null), own(0)], [undefined, null, 0])
    assert.throws(
      () => own(Promise.resolve(1)),
      new TypeError('"own" must return a thing, not a promise of it'),
    )
  })

  it('that no call waits for has its failure ignored, or logged', async () => {
    const failures: unknown[] = []
    assert.equal(
      catchRejection(Promise.reject(boom), (error) => void failures.push(error)),
      true,
    )
    assert.equal(catchRejection(Promise.reject(boom)), true)
    assert.equal(
      catchRejection(Promise.resolve(1), (error) => void failures.push(error)),
      true,
    )
    for (const none of [undefined, null, 7, {}]) assert.equal(catchRejection(none), false)
    await turn()
    assert.deepEqual(failures, [boom])
  })
})

describe('a listener of the app', () => {
  const logged: unknown[] = []
  const logger = {
    error: (fields: object, message: string) => void logged.push([fields, message]),
  } as unknown as Logger
  const told = async (listener: () => unknown) => {
    logged.length = 0
    notify(logger, 'the listener failed', listener)
    await turn()
    return [...logged]
  }

  it('is called once, and its failure is logged, both when synchronous and later', async () => {
    let calls = 0
    assert.deepEqual(await told(() => ++calls), [])
    assert.equal(calls, 1)
    const failure = [[{ err: boom }, 'the listener failed']]
    const throwing = () => {
      throw boom
    }
    assert.deepEqual(await told(throwing), failure)
    assert.deepEqual(await told(() => Promise.reject(boom)), failure)
    assert.deepEqual(await told(() => Promise.resolve()), [])
  })
})
