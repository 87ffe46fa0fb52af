import assert from 'node:assert/strict'
import { beforeEach, describe, it, type TestContext } from 'node:test'
import { entries, pass, type RecordedWriters, recordedWriters } from './recorded-writer.ts'

const DAY = 86_400_000

let store: RecordedWriters['store']
let logger: RecordedWriters['logger']
let writerOf: RecordedWriters['writerOf']

beforeEach((t) => {
  ;({ store, logger, writerOf } = recordedWriters(t as TestContext))
})

describe('the retention of a call log writer', () => {
  it('is as it was where the same time is given again, or entries are kept for ever', async (t) => {
    const prune = t.mock.method(store, 'prune')
    const writer = writerOf({ keepEntriesMs: 2 * DAY })
    const forEver = writerOf({ keepEntriesMs: null })
    writer.keepFor(2 * DAY)
    forEver.keepFor(DAY)
    await pass(t, 14_999)
    assert.equal(prune.mock.callCount(), 0)
    await pass(t, 1)
    assert.equal(prune.mock.callCount(), 1)
  })

  it('is looked after once in a time, however often it is changed, and not after the end', async (t) => {
    const prune = t.mock.method(store, 'prune')
    const writer = writerOf()
    for (const days of [2, 3, 4]) writer.keepFor(days * DAY)
    await pass(t, 50)
    assert.deepEqual(
      prune.mock.calls.map(({ arguments: [before] }) => before),
      [Date.now() - 4 * DAY],
    )
    await pass(t, 599_999)
    assert.equal(prune.mock.callCount(), 1)
    await writer.close()
    writer.keepFor(DAY)
    await pass(t, DAY)
    assert.equal(prune.mock.callCount(), 1)
  })

  it('is not needed for the end: a writer that keeps entries for ever writes what waits, and takes no more', async () => {
    const [waiting, late] = entries(2)
    assert.ok(waiting && late)
    const forEver = writerOf({ keepEntriesMs: null })
    forEver.add(waiting)
    await forEver.close()
    await forEver.close()
    forEver.add(late)
    assert.deepEqual((await store.list({ limit: 5 })).entries, [waiting])
  })

  it('is logged as failing again after it has worked', async (t) => {
    const prune = t.mock.method(store, 'prune', async () => Promise.reject(new Error('away')))
    writerOf()
    await pass(t, 15_000)
    prune.mock.mockImplementation(async () => 0)
    await pass(t, 600_000)
    prune.mock.mockImplementation(async () => Promise.reject(new Error('away again')))
    await pass(t, 600_000)
    await pass(t, 600_000)
    assert.deepEqual(
      logger.lines.map(({ fields, message }) => [message, fields]),
      ['away', 'away again'].map((text) => [
        'call log: old entries could not be deleted',
        { err: new Error(text) },
      ]),
    )
  })

  it('goes on with a slice that is not full only ten minutes later', async (t) => {
    const prune = t.mock.method(store, 'prune', async () => 499)
    writerOf()
    await pass(t, 15_000)
    await pass(t, 599_999)
    assert.equal(prune.mock.callCount(), 1)
    await pass(t, 1)
    assert.equal(prune.mock.callCount(), 2)
  })
})
