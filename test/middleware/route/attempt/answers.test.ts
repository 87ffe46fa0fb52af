import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { describe, it } from 'node:test'
import { embeddings } from '../../../../lib/core/operations/embeddings.ts'
import { MAX_BYTES_AT_ONCE, takeTurn } from '../../../../lib/core/timing/index.ts'
import {
  ANSWER,
  DONE,
  failureOf,
  JSON_TYPE,
  lineAnswer,
  STOP,
  STREAM,
  WORD,
} from '../support/line-answers.ts'
import { turnOver } from '../support/routed-calls.ts'

const wholeAnswer = (text: string, members = {}) => {
  const halves = [text.slice(0, 7), text.slice(7)].filter((half) => half !== '')
  return lineAnswer(members).answered(JSON_TYPE, ...halves)
}

describe('the head of an answer', () => {
  it('has the type that was asked for, and no encoding', async () => {
    const started = async (headers: IncomingHttpHeaders, stream = false) => {
      const { made } = lineAnswer({ stream })
      await made.answer(200, headers)
      await turnOver()
      const end = made.result
      if (!end) made.leave()
      return failureOf(end)
    }
    const malformed = (detail: string) => ['upstream_error', detail, true, true, false]
    assert.equal(await started(JSON_TYPE), undefined)
    assert.equal(await started({}), undefined)
    assert.equal(await started({ ...JSON_TYPE, 'content-encoding': 'identity' }), undefined)
    assert.equal(await started({ 'content-type': 'Text/Event-Stream; charset=utf-8' }, true), undefined)
    assert.deepEqual(await started({ 'content-encoding': 'odd' }), malformed('encoded as odd'))
    assert.equal(await started(STREAM), undefined, 'it is turned into what was asked for')
    assert.equal(await started(JSON_TYPE, true), undefined)
    assert.equal(
      await started({ 'content-type': 'text/html' }),
      undefined,
      'a whole answer may have any type',
    )
    assert.deepEqual(
      await started({ 'content-type': 'text/html' }, true),
      malformed('the answer has the type "text/html"'),
    )
    assert.deepEqual(await started({}, true), malformed('the answer has the type ""'))
  })
})

describe('a whole answer', () => {
  it('is served as it came, with what it says', async () => {
    const end = await wholeAnswer(ANSWER)
    assert.ok(end.kind === 'served')
    assert.equal(String(end.unsent), ANSWER)
    assert.deepEqual([end.reading?.substance, end.stream], ['output', undefined])
  })

  it('that holds data is served in the pieces that came', async () => {
    const text = JSON.stringify({ data: [{ embedding: [1, 2] }] })
    const end = await lineAnswer({}, embeddings).answered(JSON_TYPE, text.slice(0, 9), text.slice(9))
    assert.ok(end.kind === 'served' && Array.isArray(end.unsent))
    assert.equal(Buffer.concat(end.unsent).toString(), text)
  })

  it('fails where it is none, names an error, or says nothing', async () => {
    assert.deepEqual(failureOf(await wholeAnswer('{"choices":')), [
      'upstream_error',
      'the answer is not JSON, or has too many values, members or levels',
      true,
      true,
      false,
    ])
    assert.deepEqual(failureOf(await wholeAnswer('{}'))?.slice(2), [true, true, false])
    for (const text of ['nonsense', '<p>', ''])
      assert.match(String(failureOf(await wholeAnswer(text))?.[1]), /^the answer is not JSON/)
    const empty = ANSWER.replace('Hi', '')
    const nothing = ['empty_completion', 'no output', true, true, false]
    assert.deepEqual(failureOf(await wholeAnswer(empty)), nothing)
    const filtered = empty.replace('"stop"', '"content_filter"')
    assert.deepEqual(failureOf(await wholeAnswer(filtered)), [
      'content_filtered',
      'stopped by moderation',
      false,
      false,
      false,
    ])
  })

  it('may say nothing where no output was asked for', async () => {
    const empty = ANSWER.replace('Hi', '')
    assert.equal((await wholeAnswer(empty, { body: { json: { max_tokens: 0 } } })).kind, 'served')
    assert.equal((await wholeAnswer(empty, { body: { json: { max_tokens: 1 } } })).kind, 'failed')
  })

  it('that breaks off is none', async () => {
    const end = await lineAnswer().answers(200, JSON_TYPE, [ANSWER], 'breaks off')
    assert.deepEqual(failureOf(end), ['upstream_error', 'reset', true, true, false])
  })

  it('whose caller leaves before its end is abandoned', async () => {
    assert.equal((await lineAnswer().answers(200, JSON_TYPE, [ANSWER], 'is left')).kind, 'abandoned')
  })
})

describe('a large whole answer', () => {
  const LARGE = ANSWER.replace('Hi', 'x'.repeat(MAX_BYTES_AT_ONCE))

  /** Somebody else works on something large just now. */
  const othersWork = (owner: string, ms = 0): void =>
    takeTurn(owner, () => {
      for (const until = performance.now() + ms; performance.now() < until; );
    })

  it('is read in its turn; a smaller one at once', async (t) => {
    // The pause behind the work of others ends when the test says so, however busy this machine is.
    t.mock.timers.enable({ apis: ['setTimeout'] })
    othersWork('globex', 20)
    const small = lineAnswer()
    await small.made.answer(200, JSON_TYPE, ANSWER)
    small.made.over()
    await turnOver()
    assert.equal(small.made.result?.kind, 'served')
    const large = lineAnswer()
    await large.made.answer(200, JSON_TYPE, LARGE)
    large.made.over()
    await turnOver()
    const beforeItsTurn = large.made.result?.kind
    t.mock.timers.tick(60_000)
    await large.made.finished
    assert.deepEqual([beforeItsTurn, large.made.result?.kind], [undefined, 'served'])
  })

  it('that has come whole is served even if its caller leaves before its turn', async () => {
    othersWork('globex', 20)
    const end = await lineAnswer().answers(200, JSON_TYPE, [LARGE], 'ends')
    assert.equal(end.kind, 'served')
    othersWork('globex', 20)
    const { made } = lineAnswer()
    await made.answer(200, JSON_TYPE, LARGE)
    made.over()
    await turnOver()
    made.leave()
    await made.finished
    assert.deepEqual([made.result?.kind, made.result?.disconnect?.ended], ['served', 'drained'])
  })
})

describe('an answer with another status', () => {
  const refused = async (
    status: number,
    text: string,
    members: Parameters<typeof lineAnswer>[0] = {},
    last: 'ends' | 'breaks off' = 'ends',
  ) => {
    const pieces = text === '' ? [] : [text]
    const end = await lineAnswer(members).answers(status, { 'retry-after': '7' }, pieces, last)
    assert.ok(end.kind === 'failed')
    return end
  }

  it('fails by its status and by what its body says', async () => {
    assert.equal((await refused(500, 'nonsense')).failure.code, 'upstream_error')
    const limited = (await refused(429, '{"error":{"message":"slow"}}')).failure
    assert.deepEqual([limited.code, limited.retryAfterMs], ['upstream_rate_limited', 7000])
    const long = '{"error":{"code":"context_length_exceeded","message":"x"}}'
    assert.equal((await refused(400, long)).failure.code, 'context_too_long')
  })

  it('fails so where it breaks off, too', async () => {
    assert.equal((await refused(429, '{"error":', {}, 'breaks off')).failure.code, 'upstream_rate_limited')
  })

  it('counts against nothing where a line was asked for what it does not have', async () => {
    const resource = { method: 'GET', path: '/x' }
    const gone = await refused(404, '', { resource })
    assert.deepEqual([gone.failure.code, gone.elsewhere, gone.lineFault], ['not_found', false, false])
    assert.notEqual((await refused(404, '')).failure.code, 'not_found')
    assert.notEqual((await refused(500, '', { resource })).failure.code, 'not_found')
  })

  it('is read no further than its reason', async () => {
    for (const pieces of [['x'], ['x', 'x'.repeat(64 * 1024)], ['x'.repeat(64 * 1024 + 1)]]) {
      const isLong = pieces.join('').length > 64 * 1024
      const { made, answers } = lineAnswer()
      const end = await answers(503, {}, pieces, isLong ? 'goes on' : 'ends')
      assert.equal(failureOf(end)?.[0], 'upstream_overloaded')
      assert.equal(made.aborted.length, isLong ? 1 : 0)
    }
  })
})

describe('a stream', () => {
  const streaming = () => lineAnswer({ stream: true })

  it('is relayed as it comes, and ends with what is to be sent once all is settled', async () => {
    const { made, answers, written } = streaming()
    const end = await answers(200, STREAM, [WORD + WORD, STOP + DONE], 'goes on')
    assert.equal(written().join(''), WORD + WORD)
    assert.ok(end.kind === 'served')
    assert.equal(String(end.unsent), STOP + DONE)
    assert.equal(end.record?.skipped, 0)
    assert.deepEqual(made.aborted, [], 'its response may still end')
  })

  it('is whole once its finish reason has come, however it ends', async () => {
    for (const last of ['ends', 'breaks off'] as const) {
      const end = await streaming().answers(200, STREAM, [WORD + STOP], last)
      assert.ok(end.kind === 'served')
      assert.equal(String(end.unsent), STOP + DONE)
    }
  })

  it('without one has broken off, for good where some of it was sent', async () => {
    const end = await streaming().answered(STREAM, WORD)
    assert.deepEqual(failureOf(end), [
      ...['upstream_error', 'the stream ended without a finish reason'],
      ...[false, true, true],
    ])
    assert.equal(end.kind === 'failed' && end.failure.retryable, false)
    assert.deepEqual(failureOf(await streaming().answered(STREAM)), [
      'upstream_error',
      'the stream ended before it began',
      true,
      true,
      false,
    ])
    assert.equal((await streaming().answers(200, STREAM, [WORD], 'breaks off')).kind, 'failed')
    const { made } = lineAnswer()
    made.breakOff()
    await made.finished
    assert.deepEqual(
      failureOf(made.result),
      ['upstream_error', 'reset', true, true, false],
      'before its head',
    )
    const over = await streaming().answers(200, STREAM, [WORD + STOP + DONE], 'breaks off')
    assert.equal(over.kind, 'served', 'behind its last event')
  })

  it('whose caller has left ends with what has come by then', async () => {
    const running = streaming()
    const abandoned = await running.answers(200, STREAM, [WORD], 'is left')
    assert.ok(abandoned.kind === 'abandoned')
    assert.equal(abandoned.stream?.reader.estimatedOutput, 1)
    assert.equal(running.written().join(''), WORD)
    // Output that comes in the turn in which the caller leaves counts as received.
    const over = streaming()
    await over.made.answer(200, STREAM, WORD)
    const rest = over.made.more(STOP + DONE)
    over.made.leave()
    await rest
    await over.made.finished
    assert.equal(over.made.result?.kind, 'served')
  })
})
