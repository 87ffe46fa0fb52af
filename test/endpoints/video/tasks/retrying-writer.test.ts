import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { RetryingWriter } from '../../../../lib/endpoints/video/tasks/retrying-writer.ts'
import { until } from '../../../support/until.ts'
import { KeptLog } from '../support/settler-run.ts'

describe('a record of the outcome of a create', () => {
  it('is answered when the store answers', async () => {
    const records = new RetryingWriter({ logger: new KeptLog() })
    assert.equal(await records.write('created', 'video_1', async () => 'task'), 'task')
    assert.equal(records.pending, 0)
    await records.close()
  })

  it('is tried again until the store answers, and logged once', async () => {
    const logger = new KeptLog()
    const records = new RetryingWriter({ logger, retryMs: 1 })
    let failures = 0
    const operation = async () => {
      if (++failures <= 3) throw new Error('connection refused')
      return 'task'
    }
    assert.equal(await records.write('created', 'video_1', operation), 'task')
    const [told, ...others] = logger.about(/tried again/)
    assert.deepEqual([told?.what, told?.task, others], ['created', 'video_1', []])
  })

  it('that comes too late for its call is written all the same', async () => {
    const records = new RetryingWriter({ logger: new KeptLog(), waitMs: 5, retryMs: 1 })
    const { promise, resolve } = Promise.withResolvers<string>()
    assert.equal(await records.write('created', 'video_1', () => promise), 'late')
    assert.equal(records.pending, 1)
    resolve('task')
    await until(() => records.pending === 0)
  })

  it('that is never written is logged at the end', async () => {
    const logger = new KeptLog()
    const records = new RetryingWriter({ logger, waitMs: 1, retryMs: 1 })
    const failing = () => Promise.reject(new Error('connection refused'))
    assert.equal(await records.write('withdraw', 'video_1', failing), 'late')
    await records.close(10)
    assert.deepEqual(logger.about(/was not written/), [{ what: 'withdraw', task: 'video_1' }])
    assert.equal(records.pending, 0)
  })
})
