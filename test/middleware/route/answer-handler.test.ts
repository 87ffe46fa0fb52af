import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { describe, it } from 'node:test'
import { embeddings } from '../../../lib/core/operations/index.ts'
import type { AnswerEnd } from '../../../lib/middleware/route/attempt/answer-end.ts'
import {
  ANSWER,
  BROKEN,
  DONE,
  failureOf,
  handlerOf,
  JSON_TYPE,
  STOP,
  STREAM,
  WORD,
} from './answer-handlers.ts'

function wholeAnswer(text: string, members: object = {}): AnswerEnd {
  const { handler, push } = handlerOf(members)
  assert.equal(handler.start(200, JSON_TYPE), undefined)
  for (const half of [text.slice(0, 7), text.slice(7)]) if (half !== '') push(half)
  return handler.finish()
}

describe('the head of an answer', () => {
  it('has the type that was asked for, and no encoding', () => {
    const started = (headers: IncomingHttpHeaders, stream = false) =>
      failureOf(handlerOf({ stream }).handler.start(200, headers))
    const malformed = (detail: string) => ['upstream_error', detail, true, true, false]
    assert.equal(started(JSON_TYPE), undefined)
    assert.equal(started({}), undefined)
    assert.equal(started({ ...JSON_TYPE, 'content-encoding': 'identity' }), undefined)
    assert.equal(started({ 'content-type': 'Text/Event-Stream; charset=utf-8' }, true), undefined)
    assert.deepEqual(started({ 'content-encoding': 'gzip' }), malformed('encoded as gzip'))
    assert.equal(started(STREAM), undefined, 'it is turned into what was asked for')
    assert.equal(started(JSON_TYPE, true), undefined)
    const page = handlerOf().handler.start(200, { 'content-type': 'text/html' })
    assert.equal(page, undefined, 'a whole answer may have any type, as before')
    assert.deepEqual(
      failureOf(handlerOf({ stream: true }).handler.start(200, { 'content-type': 'text/html' })),
      malformed('the answer has the type "text/html"'),
    )
    assert.deepEqual(started({}, true), malformed('the answer has the type ""'))
  })
})

describe('a whole answer', () => {
  it('is served as it came, with what it says', () => {
    const end = wholeAnswer(ANSWER)
    assert.ok(end.kind === 'served')
    assert.equal(String(end.unsent), ANSWER)
    assert.deepEqual([end.reading?.substance, end.reader], ['output', undefined])
  })

  it('that holds data is served in the pieces that came', () => {
    const { handler, push } = handlerOf({}, embeddings as never)
    const text = JSON.stringify({ data: [{ embedding: [1, 2] }] })
    handler.start(200, JSON_TYPE)
    push(text.slice(0, 9))
    push(text.slice(9))
    const end = handler.finish()
    assert.ok(end.kind === 'served' && Array.isArray(end.unsent))
    assert.equal(Buffer.concat(end.unsent).toString(), text)
  })

  it('fails where it is none, names an error, or says nothing', () => {
    assert.deepEqual(failureOf(wholeAnswer('{"choices":')), [
      'upstream_error',
      'the answer is not JSON, or has too many values, members or levels',
      true,
      true,
      false,
    ])
    assert.deepEqual(failureOf(wholeAnswer('{}'))?.slice(2), [true, true, false])
    for (const text of ['nonsense', '<p>', ''])
      assert.match(String(failureOf(wholeAnswer(text))?.[1]), /^the answer is not JSON/)
    const empty = ANSWER.replace('Hi', '')
    const nothing = ['empty_completion', 'no output', true, true, false]
    assert.deepEqual(failureOf(wholeAnswer(empty)), nothing)
    const filtered = empty.replace('"stop"', '"content_filter"')
    assert.deepEqual(failureOf(wholeAnswer(filtered)), [
      'content_filtered',
      'stopped by moderation',
      false,
      false,
      false,
    ])
  })

  it('may say nothing where no output was asked for', () => {
    const empty = ANSWER.replace('Hi', '')
    assert.equal(wholeAnswer(empty, { body: { json: { max_tokens: 0 } } }).kind, 'served')
    assert.equal(wholeAnswer(empty, { body: { json: { max_tokens: 1 } } }).kind, 'failed')
  })

  it('that breaks off is none', () => {
    const { handler, push } = handlerOf()
    handler.start(200, JSON_TYPE)
    push(ANSWER)
    const end = handler.breakOff(BROKEN)
    assert.equal(end.kind === 'failed' && end.failure, BROKEN)
    assert.equal(handler.abandon().kind, 'abandoned')
  })
})

describe('an answer with another status', () => {
  const refused = (
    status: number,
    text: string,
    members: object = {},
    how: 'finish' | 'break off' = 'finish',
  ) => {
    const { handler, push } = handlerOf(members)
    assert.equal(handler.start(status, { 'retry-after': '7' }), undefined)
    if (text !== '') push(text)
    const end = how === 'finish' ? handler.finish() : handler.breakOff(BROKEN)
    assert.ok(end.kind === 'failed')
    return end
  }

  it('fails by its status and by what its body says', () => {
    assert.equal(refused(500, 'nonsense').failure.code, 'upstream_error')
    const page = handlerOf({ stream: true })
    assert.equal(
      page.handler.start(500, { 'content-type': 'text/html', 'content-encoding': 'br' }),
      undefined,
    )
    const limited = refused(429, '{"error":{"message":"slow"}}').failure
    assert.deepEqual([limited.code, limited.retryAfterMs], ['upstream_rate_limited', 7000])
    const long = '{"error":{"code":"context_length_exceeded","message":"x"}}'
    assert.equal(refused(400, long).failure.code, 'context_too_long')
  })

  it('fails so where it breaks off, too', () => {
    assert.equal(refused(429, '{"error":', {}, 'break off').failure.code, 'upstream_rate_limited')
  })

  it('is nobody’s fault where a line was asked for what it does not have', () => {
    const gone = refused(404, '', { resource: { method: 'GET', path: '/x' } })
    assert.deepEqual([gone.failure.code, gone.elsewhere, gone.lineFault], ['not_found', false, false])
    assert.notEqual(refused(404, '').failure.code, 'not_found')
    assert.notEqual(refused(500, '', { resource: { method: 'GET', path: '/x' } }).failure.code, 'not_found')
  })

  it('is read no further than its reason', () => {
    const { handler, push } = handlerOf()
    handler.start(503, {})
    assert.equal(push('x'), false)
    assert.equal(handler.flush(), undefined)
    assert.equal(push('x'.repeat(64 * 1024)), true)
    assert.deepEqual(failureOf(handler.flush())?.[0], 'upstream_overloaded')
    push('{"error":')
    assert.deepEqual(failureOf(handler.finish())?.[0], 'upstream_overloaded', 'however it goes on')
    const whole = handlerOf().handler
    whole.start(503, {})
    assert.equal(whole.push(Buffer.alloc(64 * 1024 + 1)), true, 'in one piece, too')
  })
})

describe('a stream', () => {
  const streaming = () => {
    const made = handlerOf({ stream: true })
    assert.equal(made.handler.start(200, STREAM), undefined)
    return made
  }

  it('is relayed turn by turn, and ends with what is to be sent once all is settled', () => {
    const { handler, push, written } = streaming()
    assert.equal(handler.flush(), undefined)
    assert.equal(push(WORD), true)
    assert.equal(push(WORD), false, 'one look at the end of the turn is enough')
    assert.deepEqual(written, [])
    assert.equal(handler.flush(), undefined)
    assert.equal(written.join(''), WORD + WORD)
    assert.equal(push(STOP), true)
    push(DONE)
    const end = handler.flush()
    assert.ok(end?.kind === 'served')
    assert.equal(String(end.unsent), STOP + DONE)
    assert.equal(end.reader, handler.reader)
    assert.equal(handler.skipped, 0)
  })

  it('is whole once its finish reason has come, however it ends', () => {
    for (const how of ['finish', 'break off'] as const) {
      const { handler, push } = streaming()
      push(WORD + STOP)
      const end = how === 'finish' ? handler.finish() : handler.breakOff(BROKEN)
      assert.ok(end.kind === 'served')
      assert.equal(String(end.unsent), STOP + DONE)
    }
  })

  it('without one has broken off, for good where some of it was sent', () => {
    const sent = streaming()
    sent.push(WORD)
    const end = sent.handler.finish()
    assert.deepEqual(failureOf(end), [
      ...['upstream_error', 'the stream ended without a finish reason'],
      ...[false, true, true],
    ])
    assert.equal(end.kind === 'failed' && end.failure.retryable, false)
    const unsent = streaming()
    assert.deepEqual(failureOf(unsent.handler.finish()), [
      'upstream_error',
      'the stream ended before it began',
      true,
      true,
      false,
    ])
    const broken = streaming()
    broken.push(WORD)
    assert.equal(broken.handler.breakOff(BROKEN).kind, 'failed')
    const early = handlerOf().handler.breakOff(BROKEN)
    assert.equal(early.kind === 'failed' && early.failure, BROKEN, 'before its head')
    const over = streaming()
    over.push(WORD + STOP + DONE)
    assert.equal(over.handler.breakOff(BROKEN).kind, 'served', 'behind its last event')
  })

  it('whose caller has left ends with what has come by then', () => {
    const running = streaming()
    running.push(WORD)
    const abandoned = running.handler.abandon()
    assert.ok(abandoned.kind === 'abandoned')
    assert.equal(abandoned.reader, running.handler.reader)
    assert.equal(running.written.join(''), WORD)
    const over = streaming()
    over.push(WORD + STOP + DONE)
    assert.equal(over.handler.abandon().kind, 'served')
  })
})
