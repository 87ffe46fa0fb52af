import assert from 'node:assert/strict'
import { beforeEach, describe, it, type TestContext } from 'node:test'
import { entryAt } from '../../contracts/call-store.ts'
import { entries, NOW, pass, type RecordedWriters, recordedWriters } from './recorded-writer.ts'

let store: RecordedWriters['store']
let logger: RecordedWriters['logger']
let writerOf: RecordedWriters['writerOf']

beforeEach((t) => {
  ;({ store, logger, writerOf } = recordedWriters(t as TestContext))
})

describe('an entry that is not written', () => {
  it('parts an entry that the store refuses from the others, and drops it when it was refused again and again', async (t) => {
    const writer = writerOf()
    const [first, broken, ...others] = entries(40)
    assert.ok(first && broken)
    const append = store.append.bind(store)
    store.append = async (batch) => {
      if (batch.some(({ id }) => id === broken.id)) throw new Error('no such column')
      return append(batch)
    }
    for (const entry of [first, broken, ...others]) writer.add(entry)
    for (let i = 0; i < 40; i++) await pass(t, 1000)
    for (const { id } of [first, ...others]) assert.ok(await store.find(id), 'others are written')
    const later = Array.from({ length: 4 }, (_, i) => entryAt(NOW + 1000 + i))
    for (const entry of later) {
      writer.add(entry)
      for (let i = 0; i < 10; i++) await pass(t, 1000)
      assert.ok(await store.find(entry.id))
    }
    assert.deepEqual([writer.dropped, writer.queued], [1, 0])
    const refused = logger.lines.find(({ message }) => message === 'call log: the store refuses an entry')
    assert.deepEqual(refused?.fields, { err: new Error('no such column'), requestId: broken.id })
  })

  it('drops it when others were written twice since it first failed alone', async (t) => {
    const writer = writerOf()
    const [broken] = entries(1)
    assert.ok(broken)
    const append = store.append.bind(store)
    let alone = 0
    store.append = async (batch) => {
      if (!batch.some(({ id }) => id === broken.id)) return append(batch)
      if (batch.length === 1) alone++
      throw new Error('no such column')
    }
    writer.add(broken)
    for (let i = 0; i < 20; i++) await pass(t, 1000)
    assert.deepEqual([alone > 3, writer.dropped], [true, 0], 'it may be the store')
    for (const [written, dropped] of [
      [1, 0],
      [2, 1],
    ] as const) {
      writer.add(entryAt(NOW + written))
      for (let i = 0; i < 20; i++) await pass(t, 1000)
      assert.deepEqual([writer.dropped, writer.queued], [dropped, 1 - dropped])
    }
  })

  it('tries again when the store has not answered for ten seconds', async (t) => {
    const writer = writerOf()
    const [entry] = entries(1)
    assert.ok(entry)
    store.hanging = true
    writer.add(entry)
    await pass(t, 60)
    assert.equal(store.batches.length, 1)
    store.hanging = false
    for (let i = 0; i < 12; i++) await pass(t, 1000)
    assert.ok(await store.find(entry.id))
  })
})
