import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AnswerBody } from '../../../lib/middleware/idempotency/answer-body.ts'
import { AnswerQueue } from '../../../lib/middleware/idempotency/answer-queue.ts'
import { AnswerTrace } from '../../../lib/middleware/idempotency/answer-trace.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'

/** A key whose answers are kept apart, and the store of these. */
function traced({ apart = true, partBytes = 1000, completedByLedger = false } = {}) {
  const logger = recordingLogger()
  const parts: [id: string, part: number, length: number][] = []
  const dropped: string[] = []
  const faults = new Set<'write' | 'drop'>()
  const store = {
    partBytes,
    async write(id: string, part: number, bytes: Uint8Array) {
      if (faults.has('write')) throw new Error('no room')
      parts.push([id, part, bytes.byteLength])
    },
    async drop(id: string) {
      dropped.push(id)
      if (faults.has('drop')) throw new Error('not now')
    },
  }
  const body = new AnswerBody(100_000)
  const answers = new AnswerQueue(store, logger)
  const trace = new AnswerTrace('key', {
    requestId: 'req_1',
    account: 'acme',
    body,
    answers: apart ? answers : undefined,
    completedByLedger,
  })
  return { trace, body, answers, parts, dropped, faults, logger }
}

describe('an answer that is kept apart', () => {
  it('is one of more than 4 KiB, with what is still to come', async () => {
    for (const [sent, toCome, expected] of [
      [4096, null, undefined],
      [4097, null, 5],
      [5000, null, 5],
      [5001, null, 6],
      [4000, 'x'.repeat(96), undefined],
      [4000, 'x'.repeat(97), 5],
    ] as const) {
      const { trace, body, parts } = traced()
      body.addSent('x'.repeat(sent))
      const what = `${sent} ${toCome?.length}`
      assert.equal(trace.bytesWith(toCome), sent + (toCome?.length ?? 0), what)
      const keeping = trace.keepApart(toCome)
      assert.equal(keeping !== undefined, expected !== undefined, what)
      assert.equal(trace.partsApart, expected ?? 0, what)
      if (expected === undefined) continue
      assert.equal(trace.bytesWith(toCome), 0, 'its entry has none of it')
      assert.equal(await keeping, true)
      const lengths = parts.map(([id, part, length], i) => {
        assert.deepEqual([id, part], ['req_1', i])
        return length
      })
      assert.equal(lengths.length, expected)
      assert.equal(
        lengths.reduce((sum, length) => sum + length),
        sent + (toCome?.length ?? 0),
      )
    }
  })

  it('is one of a single part, too', async () => {
    const { trace, body, dropped } = traced({ partBytes: 10_000 })
    body.addSent('x'.repeat(5000))
    assert.equal(await trace.keepApart(null), true)
    assert.deepEqual([trace.partsApart, trace.bytesWith(null)], [1, 0])
    trace.discard()
    assert.deepEqual([trace.partsApart, dropped], [0, ['req_1']])
  })

  it('is written once, however often that is asked for', async () => {
    const { trace, body, parts } = traced()
    body.addSent('x'.repeat(5000))
    const first = trace.keepApart(null)
    body.addSent('y'.repeat(5000))
    assert.equal(trace.keepApart('more'), first)
    await first
    assert.equal(trace.keepApart(null), first)
    assert.equal(parts.length, 5)
  })

  it('is none where there is no store for it', () => {
    const { trace, body } = traced({ apart: false })
    body.addSent('x'.repeat(5000))
    assert.equal(trace.keepApart(null), undefined)
    assert.deepEqual([trace.partsApart, trace.bytesWith(null)], [0, 5000])
    trace.discard()
    assert.deepEqual([trace.bytesWith(null), trace.bodyWith('more')], [0, null])
  })

  it('is dropped where it could not be kept, and the call has no answer then', async () => {
    const { trace, body, dropped, faults } = traced()
    faults.add('write')
    body.addSent('x'.repeat(5000))
    assert.equal(await trace.keepApart(null), false)
    assert.deepEqual([trace.partsApart, trace.bodyWith(null), dropped], [0, null, ['req_1']])
    assert.equal(body.empty, true)
  })

  it('is dropped once when it is discarded, and one in its entry is not asked for', async () => {
    const { trace, body, dropped } = traced()
    body.addSent('x'.repeat(5000))
    await trace.keepApart(null)
    trace.discard()
    trace.discard()
    assert.deepEqual(dropped, ['req_1'])
    const small = traced()
    small.body.addSent('small')
    small.trace.discard()
    assert.deepEqual([small.dropped, small.trace.bodyWith(null)], [[], null])
  })

  it('that is not deleted is logged, and fails no call', async () => {
    const { answers, faults, logger, dropped } = traced()
    answers.drop('req_2')
    await new Promise(setImmediate)
    assert.deepEqual([dropped, logger.lines], [['req_2'], []])
    faults.add('drop')
    answers.drop('req_3')
    await until(() => logger.lines.length > 0)
    assert.deepEqual(logger.lines, [
      {
        level: 'warn',
        fields: { err: new Error('not now'), requestId: 'req_3' },
        message: 'idempotency: an answer is not deleted yet',
      },
    ])
  })
})

describe('the use of a key', () => {
  it('is that of the key, with nothing kept at first', () => {
    for (const completedByLedger of [true, false]) {
      const { trace } = traced({ completedByLedger })
      const { key, originalRequestId, responseBody, claim, partsApart } = trace
      assert.deepEqual([key, trace.completedByLedger], ['key', completedByLedger])
      assert.deepEqual([originalRequestId, responseBody, claim, partsApart], [null, null, null, 0])
      assert.equal(trace.bodyWith(null), null)
    }
  })

  it('holds what belongs to the answer and is not sent', () => {
    const { trace, body } = traced()
    body.addSent('sent, ')
    assert.equal(trace.bodyWith('to come'), 'sent, to come')
    trace.keep('unsent')
    assert.equal(trace.bodyWith(null), 'sent, unsent')
    assert.equal(trace.bodyWith('to come'), 'sent, unsent')
  })
})

describe('answers of several accounts', () => {
  it('are written two at a time, and each of them whole', async () => {
    let running = 0
    const most: number[] = []
    const store = {
      partBytes: 10,
      async write() {
        running++
        most.push(running)
        await new Promise(setImmediate)
        running--
      },
      async drop() {},
    }
    const answers = new AnswerQueue(store, recordingLogger())
    const all = ['a', 'b', 'c', 'd'].map((account) => answers.keep(account, account, [Buffer.alloc(45)]))
    assert.deepEqual(await Promise.all(all), [true, true, true, true])
    assert.deepEqual([Math.max(...most), most.length], [2, 4 * 5])
    // The lanes are free again.
    most.length = 0
    await Promise.all(['a', 'b', 'c'].map((account) => answers.keep(account, account, [Buffer.alloc(10)])))
    assert.deepEqual([Math.max(...most), most.length], [2, 3])
  })

  it('have the size of their pieces, and as many parts as that takes', () => {
    const { answers } = traced()
    for (const [lengths, parts] of [
      [[1], 1],
      [[1000], 1],
      [[999, 1], 1],
      [[999, 2], 2],
      [[500, 500, 500, 501], 3],
    ] as const)
      assert.equal(answers.partsOf(lengths.map((length) => Buffer.alloc(length))), parts, `${lengths}`)
  })
})
