import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type CallLogEntry, CallLogWriter } from '../../../lib/middleware/call-log/index.ts'
import { entryAt } from '../../contracts/call-store.ts'
import { RecordingStore, recordingLogger } from './recording-store.ts'

const entries = (count: number, more: Partial<CallLogEntry>) =>
  Array.from({ length: count }, (_, i) => ({ ...entryAt(Date.now() + i), ...more }))

describe('the bytes of entries that wait', () => {
  it('are bounded: large answers leave room for small entries, and what is written takes none', async () => {
    const store = new RecordingStore()
    const logger = recordingLogger()
    const writer = new CallLogWriter({ store, logger, maxQueueBytes: 1_000_000 })
    const large = entries(5, { account: 'loud', response_body: 'x'.repeat(300_000) })
    for (const entry of large) writer.add(entry)
    assert.deepEqual([writer.queued, writer.dropped], [3, 2])
    const small = entries(20, { account: 'quiet' })
    for (const entry of small) writer.add(entry)
    assert.deepEqual([writer.queued, writer.dropped], [23, 2])
    await writer.flush()
    const written = [...large.slice(2), ...small].map(({ id }) => id)
    assert.deepEqual(store.batches.flat().sort(), written.sort())
    assert.deepEqual(
      logger.lines.map(({ message }) => message),
      ['call log: the queue is full, entries are dropped', 'call log: entries are written again'],
    )
    for (const entry of large) writer.add(entry)
    assert.deepEqual([writer.queued, writer.dropped], [3, 4])
    await writer.close()
  })

  it('are bounded for what is written at once, too', async () => {
    const store = new RecordingStore()
    const writer = new CallLogWriter({ store, logger: recordingLogger() })
    for (const entry of entries(5, { response_body: 'x'.repeat(3 * 1024 * 1024) })) writer.add(entry)
    await writer.close()
    assert.deepEqual(
      store.batches.map(({ length }) => length),
      [2, 2, 1],
    )
  })
})
