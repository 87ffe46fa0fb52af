import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallRequest } from '../../../../lib/core/call/index.ts'
import { ChatStreamReader } from '../../../../lib/core/operations/chat/chat-stream.ts'
import {
  contextOf,
  isConvertible,
  looksLikeStream,
  readEvents,
} from '../../../../lib/middleware/route/attempt/convert-answer.ts'
import { DONE, STOP, WORD } from '../support/line-answers.ts'

const read = (text: string) => readEvents(text, new ChatStreamReader({ answers: 1, relayUsage: false }))
const dataOf = (...events: string[]) => events.map((event) => JSON.parse(event.slice('data: '.length)))

describe('a whole stream that is read at once', () => {
  it('gives the data of its events, in their order, whatever its line ends are', () => {
    const text = `: hello\n\n${WORD}${STOP}${DONE}`
    for (const lineEnd of ['\n', '\r\n', '\r'])
      assert.deepEqual(read(text.replaceAll('\n', lineEnd)), {
        events: dataOf(WORD, STOP),
        error: undefined,
      })
  })

  it('is over with its last event, and may lack it, or the blank line behind its end', () => {
    const events = dataOf(WORD, STOP)
    for (const text of [WORD + STOP + DONE + WORD, WORD + STOP, (WORD + STOP).trimEnd()])
      assert.deepEqual(read(text), { events, error: undefined }, text)
  })

  it('may be cut behind its finish reason, and only there', () => {
    const events = dataOf(WORD, STOP)
    for (let kept = 0; kept < DONE.length; kept++)
      assert.deepEqual(read(WORD + STOP + DONE.slice(0, kept)), { events, error: undefined })
    const two = (text: string) => readEvents(text, new ChatStreamReader({ answers: 2, relayUsage: false }))
    assert.deepEqual(two(WORD + STOP).events, events, 'there are fewer answers than were asked for')
    assert.throws(() => two(`${WORD}${STOP}data: {`), { message: /ended without a finish reason/ })
  })

  it('returns the error that it names, with what came before', () => {
    const error = { code: 429, message: 'slow' }
    const text = `${WORD}data: ${JSON.stringify({ error })}\n\n${STOP}${DONE}`
    assert.deepEqual(read(text), { events: dataOf(WORD), error })
  })

  it('is none without a finish reason, or with an event that is no JSON', () => {
    assert.throws(() => read(WORD), { name: 'SyntaxError', message: /ended without a finish reason/ })
    assert.throws(() => read(''), SyntaxError)
    assert.throws(() => read(`${WORD}data: {\n\n${STOP}`), SyntaxError)
  })
})

describe('an answer of another form', () => {
  it('is recognised by its type', () => {
    for (const [type, converts] of [
      ['text/event-stream', true],
      ['text/event-stream; charset=utf-8', true],
      ['application/json', true],
      ['application/problem+json; charset=utf-8', true],
      ['application/jsonl', false],
      ['text/html', false],
      ['multipart/mixed; of=application/json', false],
      ['', false],
    ] as const)
      assert.equal(isConvertible(type), converts, type)
  })

  it('is recognised by its first characters, even if the type is another', () => {
    const far = ' '.repeat(999)
    for (const [text, streams] of [
      [WORD, true],
      [': comment\n\n', true],
      ['event: a\n', true],
      ['id:7\n', true],
      ['retry: 5\n', true],
      ['\ufeff\n data:', true],
      [`${far}:`, true],
      [` ${far}:`, false],
      ['', false],
      ['date: x', false],
      ['<p>data: x</p>', false],
      ['[": x"]', false],
    ] as const)
      assert.equal(looksLikeStream(text), streams, text)
  })

  it('is translated with its request, and with the second in which it was made', (t) => {
    t.mock.timers.enable({ apis: ['Date'], now: 1_700_000_000_999 })
    const json = { model: 'chat' }
    const request = { body: { json }, estimatedInputTokens: 7 } as unknown as CallRequest
    assert.deepEqual(contextOf(request), { request: json, created: 1_700_000_000, estimatedInputTokens: 7 })
  })
})
