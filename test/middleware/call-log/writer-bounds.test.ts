import assert from 'node:assert/strict'
import { beforeEach, describe, it, type TestContext } from 'node:test'
import {
  type CallLogEntry,
  CallLogWriter,
  type CallLogWriterOptions,
} from '../../../lib/middleware/call-log/index.ts'
import { entryAt } from '../../contracts/call-store.ts'
import { entries, NOW, pass, type RecordedWriters, recordedWriters } from './recorded-writer.ts'
import { recordingLogger } from './recording-store.ts'

const MIB = 1024 * 1024

let store: RecordedWriters['store']
let logger: RecordedWriters['logger']
let writerOf: RecordedWriters['writerOf']

beforeEach((t) => {
  ;({ store, logger, writerOf } = recordedWriters(t as TestContext))
})

const messages = () => logger.lines.map(({ message }) => message)
const lengths = () => store.batches.map(({ length }) => length)

let serial = 0
/** An entry that takes exactly so many bytes of the queue: 2048, and its answer. */
const entryOf = (bytes: number): CallLogEntry =>
  entryAt(NOW + serial++, { routing: null, response_body: 'x'.repeat(bytes - 2048) })

describe('the queue of the call log writer', () => {
  it('returns how many bytes wait: none at first, none once they are written, none once they are lost', async (t) => {
    const writer = writerOf()
    assert.equal(writer.queuedBytes, 0)
    writer.add(entryOf(5000))
    writer.add(entryOf(3000))
    assert.deepEqual([writer.queued, writer.queuedBytes], [2, 8000])
    await pass(t, 50)
    assert.deepEqual([writer.queued, writer.queuedBytes], [0, 0])
    store.failing = true
    writer.add(entryOf(4000))
    await pass(t, 50)
    assert.deepEqual([writer.queued, writer.queuedBytes], [1, 4000], 'what failed still waits')
    const closing = writer.close(100)
    await pass(t, 100)
    await closing
    assert.deepEqual([writer.queued, writer.queuedBytes, writer.dropped], [0, 0, 1])
  })

  it('takes as many bytes as it may, and not one more', () => {
    for (const [bytes, dropped] of [
      [10_000, 0],
      [10_001, 1],
    ] as const) {
      const writer = writerOf({ maxQueueBytes: 15_000 })
      writer.add(entryOf(5000))
      writer.add(entryOf(bytes))
      assert.equal(writer.dropped, dropped, `${bytes}`)
    }
  })

  it('is shared: while the store is away, an account loses its own entries only, and the others are written first', async (t) => {
    const writer = writerOf({ maxQueue: 100, batchSize: 10 })
    store.failing = true
    const of = (account: string | null, count: number) =>
      Array.from({ length: count }, () => entryAt(NOW + serial++, { account }))
    const quiet = of('quiet', 5)
    for (const entry of [...of('loud', 90), ...quiet, ...of(null, 90), ...of('loud', 900)]) writer.add(entry)
    await pass(t, 50)
    assert.deepEqual([writer.queued, writer.dropped], [100, 985])
    store.failing = false
    store.batches.length = 0
    await writer.flush()
    const written = store.batches.flat()
    assert.equal(written.length, 100)
    for (const { id } of quiet) {
      assert.ok(written.includes(id))
      assert.ok(written.indexOf(id) < 20, `${written.indexOf(id)} were written before it`)
    }
    await pass(t, 1000)
    const accounts = logger.lines
      .map(({ fields }) => (fields as { accounts?: object }).accounts)
      .find(Boolean)
    assert.deepEqual(Object.keys(accounts ?? {}).sort(), ['', 'loud'])
  })

  it('takes 64 MiB by default', () => {
    const writer = writerOf()
    for (let i = 0; i < 64; i++) writer.add(entryOf(MIB))
    assert.deepEqual([writer.queuedBytes, writer.dropped], [64 * MIB, 0])
    writer.add(entryOf(2048))
    assert.equal(writer.dropped, 1)
  })

  it('is logged as full once, and as well again when half of it is free', async (t) => {
    for (const [batchSize, ends] of [
      [5, 1],
      [4, 2],
    ] as const) {
      logger.lines.length = 0
      const writer = writerOf({ maxQueue: 10, batchSize })
      const go: (() => void)[] = []
      t.mock.method(store, 'append', () => new Promise<void>((resolve) => void go.push(resolve)))
      for (const entry of entries(12)) writer.add(entry)
      assert.equal(writer.dropped, 2)
      for (let written = 1; written <= ends; written++) {
        assert.deepEqual(messages(), ['call log: the queue is full, entries are dropped'])
        go.shift()?.()
        await pass(t, 50)
      }
      assert.deepEqual(messages().slice(1), ['call log: entries are written again'], `${batchSize}`)
      assert.deepEqual(logger.lines[1]?.fields, { dropped: 2, accounts: { acme: 2 } })
      t.mock.restoreAll()
    }
  })

  it('is logged as full of bytes in the same way', async (t) => {
    for (const [bytes, isWell] of [
      [5000, true],
      [5001, false],
    ] as const) {
      logger.lines.length = 0
      const writer = writerOf({ maxQueueBytes: 10_000, batchSize: 1 })
      let go = (): void => {}
      t.mock.method(store, 'append', () => new Promise<void>((resolve) => (go = resolve)))
      writer.add(entryOf(10_000 - bytes))
      writer.add(entryOf(2048))
      writer.add(entryOf(bytes))
      assert.equal(writer.dropped, 1)
      go()
      await pass(t, 0)
      assert.equal(messages().includes('call log: entries are written again'), isWell, `${bytes}`)
      t.mock.restoreAll()
    }
  })
})

describe('a batch of the call log writer', () => {
  it('holds as many bytes as it may, and not one more', async () => {
    for (const [bytes, expected] of [
      [2 * MIB, [4, 1]],
      [2 * MIB + 1, [3, 2]],
    ] as const) {
      store.batches.length = 0
      const writer = writerOf()
      for (let i = 0; i < 5; i++) writer.add(entryOf(bytes))
      await writer.flush()
      assert.deepEqual(lengths(), expected, `${bytes}`)
    }
  })

  it('holds an entry that is larger than a batch alone', async () => {
    const writer = writerOf()
    for (const bytes of [3000, 9 * MIB, 3000]) writer.add(entryOf(bytes))
    await writer.flush()
    assert.deepEqual(lengths(), [1, 1, 1])
    assert.deepEqual([writer.queued, writer.dropped], [0, 0])
  })

  it('that is being written is not written again by a flush, which waits for it and the rest', async (t) => {
    const go: (() => void)[] = []
    const sizes: number[] = []
    t.mock.method(store, 'append', (batch: readonly CallLogEntry[]) => {
      sizes.push(batch.length)
      return new Promise<void>((resolve) => void go.push(resolve))
    })
    const writer = writerOf({ batchSize: 2 })
    for (const entry of entries(3)) writer.add(entry)
    let flushed = 0
    for (let i = 0; i < 2; i++) void writer.flush().then(() => flushed++)
    await pass(t, 0)
    assert.deepEqual([sizes, flushed], [[2], 0])
    go.shift()?.()
    await pass(t, 0)
    assert.deepEqual([sizes, flushed], [[2, 1], 0])
    go.shift()?.()
    await pass(t, 0)
    assert.deepEqual([sizes, flushed, writer.queued], [[2, 1], 2, 0])
  })

  it('is written at once when it is just full', async (t) => {
    const writer = writerOf({ batchSize: 3 })
    for (const entry of entries(3)) writer.add(entry)
    await pass(t, 0)
    assert.deepEqual(lengths(), [3])
  })

  it('goes out alone: those that come meanwhile wait for its end, and for 50 ms from then', async (t) => {
    let go = (): void => {}
    const sizes: number[] = []
    t.mock.method(store, 'append', (batch: readonly CallLogEntry[]) => {
      sizes.push(batch.length)
      return new Promise<void>((resolve) => (go = resolve))
    })
    const writer = writerOf({ batchSize: 4 })
    for (const entry of entries(4)) writer.add(entry)
    writer.add(entryAt(NOW + 10))
    await pass(t, 200)
    for (const entry of entries(2)) writer.add(entry)
    await pass(t, 200)
    assert.deepEqual(sizes, [4])
    go()
    await pass(t, 0)
    await pass(t, 49)
    assert.deepEqual(sizes, [4])
    await pass(t, 1)
    assert.deepEqual(sizes, [4, 3])
    go()
    await pass(t, 500)
    assert.deepEqual([sizes, writer.queued], [[4, 3], 0])
  })
})

describe('the options of the call log writer', () => {
  const WRONG: [keyof CallLogWriterOptions, unknown][] = [
    ['store', {}],
    ['store', { find() {} }],
    ['logger', {}],
    ...(['maxQueue', 'maxQueueBytes', 'batchSize'] as const).map((name): [typeof name, number] => [
      name,
      0.5,
    ]),
    ['flushMs', -0.1],
    ['flushMs', 1000.1],
    ['keepEntriesMs', -1],
    ['keepEntriesMs', '1'],
    ['keepEntriesMs', true],
  ]
  for (const [name, value] of WRONG)
    it(`refuse "${name}" of ${JSON.stringify(value)}, by its name`, () => {
      assert.throws(
        () => new CallLogWriter({ store, logger: recordingLogger(), [name]: value } as CallLogWriterOptions),
        { name: 'TypeError', message: new RegExp(`^CallLogWriter: .*"${name}"`) },
      )
    })
})
