import assert from 'node:assert/strict'
import { beforeEach, describe, it, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import {
  type CallLogEntry,
  CallLogWriter,
  type CallLogWriterOptions,
  MemoryCallStore,
} from '../../../lib/middleware/call-log/index.ts'
import { entryAt } from '../../contracts/call-store.ts'
import { entries, NOW, pass, type RecordedWriters, recordedWriters } from './recorded-writer.ts'
import { RecordingStore, recordingLogger } from './recording-store.ts'

const DAY = 86_400_000

let store: RecordedWriters['store']
let logger: RecordedWriters['logger']
let writerOf: RecordedWriters['writerOf']

beforeEach((t) => {
  ;({ store, logger, writerOf } = recordedWriters(t as TestContext))
})

function messages(): string[] {
  return logger.lines.map(({ level, message }) => `${level}: ${message}`)
}

describe('the call log writer', () => {
  it('writes what came within 50 ms at once', async (t) => {
    const writer = writerOf()
    const [first, second] = entries(2)
    writer.add(first!)
    await pass(t, 49)
    writer.add(second!)
    assert.deepEqual(store.batches, [])
    await pass(t, 1)
    assert.deepEqual(store.batches, [[first!.id, second!.id]])
    assert.deepEqual([writer.queued, writer.dropped], [0, 0])
  })

  it('writes a full batch without waiting, and never a larger one', async (t) => {
    const writer = writerOf()
    for (const entry of entries(1200)) writer.add(entry)
    for (let i = 0; i < 10; i++) await turn()
    assert.deepEqual(
      store.batches.map((batch) => batch.length),
      [500, 500],
    )
    await pass(t, 50)
    assert.deepEqual(
      store.batches.map((batch) => batch.length),
      [500, 500, 200],
    )
  })

  it('keeps what a failing store did not take, tries ever more slowly, and says so once', async (t) => {
    const writer = writerOf()
    const all = entries(3)
    store.failing = true
    writer.add(all[0]!)
    await pass(t, 50)
    writer.add(all[1]!)
    const tries: number[] = []
    for (let ms = 0; ms < 5000; ms += 50) {
      const before = store.batches.length
      await pass(t, 50)
      if (store.batches.length > before) tries.push(ms + 50)
    }
    assert.deepEqual(tries, [150, 400, 850, 1700, 2750, 3800, 4850], 'no more than a second apart')
    assert.deepEqual(messages(), ['error: store is away'])
    writer.add(all[2]!)
    store.failing = false
    await pass(t, 1000)
    await pass(t, 50)
    assert.equal(store.batches.at(-1)?.length, 1, 'fewer at a time')
    for (let i = 0; i < 5; i++) await pass(t, 1000)
    for (const { id } of all) assert.ok(await store.find(id))
    assert.deepEqual(messages().slice(1), ['warn: store is back'])
    assert.deepEqual([writer.queued, writer.dropped], [0, 0])
  })

  it('drops the oldest while the queue is full, counts them, and logs that once', async (t) => {
    const writer = writerOf({ maxQueue: 10 })
    const all = entries(25)
    for (const entry of all) writer.add(entry)
    assert.deepEqual([writer.queued, writer.dropped], [10, 15])
    await pass(t, 50)
    assert.deepEqual(store.batches, [all.slice(15).map(({ id }) => id)])
    assert.deepEqual(messages(), [
      'error: call log: the queue is full, entries are dropped',
      'warn: call log: entries are written again',
    ])
    assert.deepEqual(logger.lines[1]?.fields, { dropped: 15, accounts: { acme: 15 } })
    writer.add(entryAt(NOW + 99))
    await pass(t, 50)
    assert.equal(store.batches.length, 2)
  })

  it('flush writes all that was added before it', async () => {
    const writer = writerOf({ batchSize: 10 })
    const all = entries(35)
    for (const entry of all) writer.add(entry)
    await writer.flush()
    assert.equal((await store.list({ limit: 100 })).entries.length, 35)
    await writer.flush()
  })

  it('close writes what waits, and takes no more', async () => {
    const writer = writerOf()
    const [kept, late] = entries(2)
    writer.add(kept!)
    await writer.close()
    writer.add(late!)
    await writer.close()
    assert.deepEqual((await store.list({ limit: 10 })).entries, [kept])
    assert.equal(writer.dropped, 1)
  })

  it('close gives up on a store that hangs or fails, and counts what is lost', async (t) => {
    for (const how of ['hanging', 'failing'] as const) {
      const store = new RecordingStore()
      store[how] = true
      const writer = writerOf({ store })
      for (const entry of entries(3)) writer.add(entry)
      const closing = writer.close(2000)
      let closed = false
      void closing.then(() => (closed = true))
      await pass(t, 1999)
      assert.equal(closed, false)
      await pass(t, 1)
      assert.equal(closed, true)
      assert.deepEqual([writer.queued, writer.dropped], [0, 3])
      assert.deepEqual(logger.lines.at(-1)?.fields, { lost: 3 })
    }
  })

  it('refuses options that cannot work', () => {
    assert.throws(() => new CallLogWriter({} as CallLogWriterOptions), /"store"/)
    for (const name of ['maxQueue', 'batchSize', 'keepEntriesMs'] as const) {
      assert.throws(() => writerOf({ [name]: 0 }), new RegExp(`"${name}"`))
    }
    assert.throws(() => writerOf({ flushMs: 1001 }), /"flushMs"/)
    for (const name of ['maxQueue', 'batchSize', 'flushMs', 'keepEntriesMs'] as const)
      assert.throws(() => writerOf({ [name]: Number.NaN }), new RegExp(`"${name}"`))
    assert.throws(() => writerOf({ flushMs: -1 }), /"flushMs"/)
    for (const options of [
      { maxQueue: 1 },
      { batchSize: 1 },
      { flushMs: 0 },
      { flushMs: 1000 },
      { keepEntriesMs: 1 },
    ])
      assert.doesNotThrow(() => writerOf(options))
  })

  it('holds ten thousand entries and writes five hundred at once, 50 ms after the first, by default', async (t) => {
    const appended: number[] = []
    const go = Promise.withResolvers<void>()
    t.mock.method(store, 'append', async (entries: readonly CallLogEntry[]) => {
      appended.push(entries.length)
      await go.promise
    })
    const one = new CallLogWriter({ store, logger: recordingLogger() })
    one.add(entryAt(NOW))
    await pass(t, 49)
    assert.deepEqual(appended, [])
    await pass(t, 1)
    assert.deepEqual(appended, [1])
    const many = new CallLogWriter({ store, logger: recordingLogger() })
    for (let i = 0; i < 10_001; i++) many.add(entryAt(NOW))
    assert.deepEqual([many.queued, many.dropped], [10_000, 1])
    assert.deepEqual(appended, [1, 500], 'a full batch waits for nothing')
    go.resolve()
    await many.close()
    await one.close()
    assert.equal(many.queued, 0)
  })
})

describe('retention', () => {
  const old = (count: number) => Array.from({ length: count }, (_, i) => entryAt(NOW - 30 * DAY - 5000 + i))

  it('deletes entries after thirty days, in slices with pauses between', async (t) => {
    const recent = entryAt(NOW - 29 * DAY)
    await store.append([...old(1100), recent])
    const left = async () => (await store.list({ limit: 5000 })).entries.length
    const writer = writerOf()
    await pass(t, 15_000 - 1)
    assert.equal(await left(), 1101)
    await pass(t, 1)
    assert.equal(await left(), 601)
    await pass(t, 49)
    assert.equal(await left(), 601)
    await pass(t, 1)
    assert.equal(await left(), 101)
    await pass(t, 50)
    assert.deepEqual((await store.list({ limit: 5 })).entries, [recent])
    await writer.close()
  })

  it('takes over another time at once', async (t) => {
    const [older, newer] = [entryAt(NOW - 3 * DAY), entryAt(NOW - DAY)]
    await store.append([older, newer])
    const writer = writerOf()
    await pass(t, 15_000)
    assert.equal((await store.list({ limit: 5 })).entries.length, 2)
    writer.keepFor(2 * DAY)
    await pass(t, 50)
    assert.deepEqual((await store.list({ limit: 5 })).entries, [newer])
    await writer.close()
  })

  it('looks for such entries soon after the start and every ten minutes, and no more once the writer is closed', async (t) => {
    const prune = t.mock.method(store, 'prune')
    const writer = writerOf()
    for (const rounds of [1, 2, 3]) {
      await pass(t, (rounds === 1 ? 15_000 : 10 * 60_000) - 1)
      assert.equal(prune.mock.callCount(), rounds - 1)
      await pass(t, 1)
      assert.equal(prune.mock.callCount(), rounds)
      assert.deepEqual(prune.mock.calls.at(-1)?.arguments, [Date.now() - 30 * DAY, 500])
    }
    await writer.close()
    await pass(t, DAY)
    assert.equal(prune.mock.callCount(), 3)
  })

  it('can be switched off', async (t) => {
    await store.append(old(1))
    writerOf({ keepEntriesMs: null })
    await pass(t, DAY)
    assert.equal((await store.list({ limit: 5 })).entries.length, 1)
  })

  it('goes on after the store failed, which is said once', async (t) => {
    await store.append(old(1))
    const prune = t.mock.method(store, 'prune', async () => Promise.reject(new Error('away')))
    const writer = writerOf()
    await pass(t, 15_000)
    await pass(t, 10 * 60_000)
    assert.deepEqual(messages(), ['error: call log: old entries could not be deleted'])
    prune.mock.restore()
    await pass(t, 10 * 60_000)
    assert.deepEqual((await store.list({ limit: 5 })).entries, [])
    await writer.close()
  })
})

it('no timer of the writer keeps the process alive', (t) => {
  t.mock.timers.reset()
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
  const before = timers()
  new CallLogWriter({ store: new MemoryCallStore() }).add(entryAt(NOW))
  assert.equal(timers(), before)
})
