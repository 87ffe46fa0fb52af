import assert from 'node:assert/strict'
import { beforeEach, describe, it, type TestContext } from 'node:test'
import type { CallLogEntry } from '../../../lib/middleware/call-log/index.ts'
import { entryAt } from '../../contracts/call-store.ts'
import { entries, NOW, pass, type RecordedWriters, recordedWriters } from './recorded-writer.ts'

let store: RecordedWriters['store']
let logger: RecordedWriters['logger']
let writerOf: RecordedWriters['writerOf']

beforeEach((t) => {
  ;({ store, logger, writerOf } = recordedWriters(t as TestContext))
})

const lengths = () => store.batches.map(({ length }) => length)
const messages = () => logger.lines.map(({ message }) => message)

/** Lets time pass in small steps: each timer that one starts is due in a later one. */
async function passSlowly(t: TestContext, ms: number): Promise<void> {
  for (let done = 0; done < ms; done += 50) await pass(t, 50)
}

/** Fails batches with one of these entries, and notes the ids of each batch. */
function refusing(t: TestContext, refused: readonly CallLogEntry[]) {
  const batches: string[][] = []
  const append = store.append.bind(store)
  t.mock.method(store, 'append', async (batch: readonly CallLogEntry[]) => {
    batches.push(batch.map(({ id }) => id))
    if (batch.some((entry) => refused.includes(entry))) throw new Error('no such column')
    return append(batch)
  })
  return batches
}

describe('a store of the call log that fails', () => {
  it('gets an eighth each time, and eight times as much with each batch that it takes', async (t) => {
    const writer = writerOf()
    store.failing = true
    for (const entry of entries(1200)) writer.add(entry)
    await pass(t, 0)
    await pass(t, 100)
    await pass(t, 200)
    assert.deepEqual(lengths(), [500, 63, 8])
    store.failing = false
    await passSlowly(t, 2000)
    assert.deepEqual(lengths().slice(3), [1, 8, 64, 500, 500, 127])
  })

  it('is tried again after 100 ms when it fails anew', async (t) => {
    const writer = writerOf()
    const tries = async (ms: number) => {
      const before = store.batches.length
      await pass(t, ms)
      return store.batches.length - before
    }
    for (const entry of entries(2)) {
      store.failing = true
      writer.add(entry)
      assert.equal(await tries(50), 1)
      // The retry is another batch, which waits for others as each does.
      for (const [ms, tried] of [
        [50, 0],
        [49, 0],
        [1, 0],
        [49, 0],
        [1, 1],
      ] as const)
        assert.equal(await tries(ms), tried)
      store.failing = false
      await passSlowly(t, 1000)
      assert.equal(writer.queued, 0)
    }
  })

  it('is tried at once where flush is called, and flush ends when all is written', async (t) => {
    const writer = writerOf()
    store.failing = true
    for (const entry of entries(3)) writer.add(entry)
    await pass(t, 50)
    store.failing = false
    await writer.flush()
    assert.equal((await store.list({ limit: 9 })).entries.length, 3)
  })

  it('is logged once in each outage, with its error and how many entries wait', async (t) => {
    // The monotonic clock goes with the timers.
    t.mock.method(performance, 'now', () => Date.now())
    const writer = writerOf()
    for (const _outage of [1, 2]) {
      logger.lines.length = 0
      store.failing = true
      for (const entry of entries(2)) writer.add(entry)
      await passSlowly(t, 3000)
      store.failing = false
      await passSlowly(t, 3000)
      const { err } = (logger.lines[0]?.fields ?? {}) as { err?: unknown }
      assert.match(`${err}`, /the disk is gone/)
      assert.deepEqual(logger.lines, [
        {
          level: 'error',
          fields: {
            err,
            store: 'call log',
            effect: 'entries of calls come later',
            queued: 2,
          },
          message: 'store is away',
        },
        { level: 'warn', fields: { store: 'call log', forMs: 3800 }, message: 'store is back' },
      ])
    }
  })
})

it('the log line at the end of each outage says how many entries were dropped in it', async (t) => {
  const writer = writerOf({ maxQueue: 2 })
  for (const dropped of [1, 3]) {
    logger.lines.length = 0
    store.failing = true
    for (const entry of entries(2 + dropped)) writer.add(entry)
    await passSlowly(t, 500)
    store.failing = false
    await passSlowly(t, 2000)
    assert.deepEqual(logger.lines.at(-1)?.fields, { dropped, accounts: { acme: dropped } })
    assert.deepEqual(
      logger.lines.map(({ message }) => message),
      [
        'call log: the queue is full, entries are dropped',
        'store is away',
        'store is back',
        'call log: entries are written again',
      ],
    )
  }
  assert.equal(writer.dropped, 4)
})

describe('an entry that the store refuses', () => {
  it('goes alone from then on, in turn with the others', async (t) => {
    const writer = writerOf()
    const all = entries(4)
    const batches = refusing(t, all.slice(0, 1))
    const names = new Map(all.map(({ id }, i) => [id, i + 1]))
    const told = () => batches.splice(0).map((batch) => batch.map((id) => names.get(id)))
    writer.add(all[0]!)
    await pass(t, 50)
    writer.add(all[1]!)
    writer.add(all[2]!)
    await passSlowly(t, 500)
    assert.deepEqual(told(), [[1], [2], [1], [3], [1]])
    writer.add(all[3]!)
    await passSlowly(t, 600)
    // It takes none along.
    assert.deepEqual(told().slice(0, 2), [[4], [1]])
  })

  it('is counted as dropped once, takes no room any more, and keeps no flush waiting', async (t) => {
    const writer = writerOf()
    const [broken, ...others] = entries(8) as [CallLogEntry, ...CallLogEntry[]]
    refusing(t, [broken])
    writer.add(broken)
    await passSlowly(t, 3000)
    const dropped: number[] = []
    for (const other of others) {
      writer.add(other)
      await passSlowly(t, 3000)
      dropped.push(writer.dropped)
    }
    assert.deepEqual(dropped, [0, 1, 1, 1, 1, 1, 1])
    assert.deepEqual([writer.queued, writer.queuedBytes], [0, 0])
    await writer.flush()
    assert.equal((await store.list({ limit: 20 })).entries.length, 7)
  })
})

describe('a call log writer that is closed', () => {
  it('waits five seconds for the store by default', async (t) => {
    store.hanging = true
    const writer = writerOf()
    for (const entry of entries(2)) writer.add(entry)
    let closed = false
    void writer.close().then(() => (closed = true))
    await pass(t, 4999)
    assert.deepEqual([closed, writer.dropped], [false, 0])
    await pass(t, 1)
    assert.deepEqual([closed, writer.dropped], [true, 2])
    assert.deepEqual(messages(), ['call log: closed before all entries could be written'])
  })

  it('says nothing of entries that come later, and counts them', async () => {
    const writer = writerOf()
    await writer.close()
    for (const entry of entries(3)) writer.add(entry)
    assert.deepEqual([writer.dropped, writer.queued, writer.queuedBytes, messages()], [3, 0, 0, []])
  })

  it('closes once: a second call waits for nothing and gives nothing up', async (t) => {
    store.hanging = true
    const writer = writerOf()
    writer.add(entryAt(NOW))
    const first = writer.close(5000)
    await writer.close(1)
    assert.equal(writer.queued, 1)
    await pass(t, 5000)
    await first
    assert.equal(logger.lines.length, 1)
  })

  it('ends the flush that waits for what it gives up, and asks the store no more', async (t) => {
    store.failing = true
    const writer = writerOf()
    for (const entry of entries(2)) writer.add(entry)
    let flushed = false
    void writer.flush().then(() => (flushed = true))
    await passSlowly(t, 1000)
    const closing = writer.close(10)
    await pass(t, 10)
    await closing
    await pass(t, 0)
    assert.equal(flushed, true)
    const asked = store.batches.length
    await passSlowly(t, 5000)
    assert.equal(store.batches.length, asked)
  })

  it('counts nothing twice where the store answers after all', async (t) => {
    for (const answer of ['takes', 'refuses'] as const) {
      let settle = (): void => {}
      t.mock.method(
        store,
        'append',
        () =>
          new Promise<void>((resolve, reject) => {
            settle = answer === 'takes' ? resolve : () => reject(new Error('no such column'))
          }),
      )
      const writer = writerOf()
      writer.add(entryAt(NOW))
      const closing = writer.close(10)
      await pass(t, 10)
      await closing
      settle()
      await passSlowly(t, 2000)
      assert.deepEqual([writer.queued, writer.queuedBytes, writer.dropped], [0, 0, 1], answer)
      t.mock.restoreAll()
    }
  })
})
