import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { describe, it } from 'node:test'
import { chatCompletions, embeddings, messages, responses } from '../../../lib/core/operations/index.ts'
import { type Translation, translationsOf } from '../../../lib/core/translate/index.ts'
import { eventsOf } from '../../support/exchange.ts'
import { responseEvents } from '../../support/responses-upstream.ts'
import {
  ANSWER,
  BROKEN,
  DONE,
  failureOf,
  handlerOf,
  JSON_TYPE,
  STOP,
  STREAM,
  sentOf,
  WORD,
} from './answer-handlers.ts'

const [TO_MESSAGES] = translationsOf(chatCompletions) as [Translation]
const AS_CHAT = translationsOf(responses).find(({ to }) => to === chatCompletions)
const MESSAGE = JSON.stringify({
  type: 'message',
  role: 'assistant',
  content: [{ type: 'text', text: 'Hi' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 7, output_tokens: 2 },
})

const WITH_TOOL = MESSAGE.replace(
  '"content":[',
  '"content":[{"type":"tool_use","id":"t","name":"f","input":{"id":12345678901234567890}},',
)

/** The end of an answer that comes in some pieces. */
function answered(made: ReturnType<typeof handlerOf>, headers: IncomingHttpHeaders, ...pieces: string[]) {
  assert.equal(made.handler.start(200, headers), undefined)
  for (const piece of pieces) if (made.push(piece)) made.handler.flush()
  return made.handler.finish()
}

describe('the first byte of an answer', () => {
  it('is told once, before anything is sent, and of a success alone', () => {
    for (const stream of [false, true]) {
      const made = handlerOf({ stream })
      const pieces = stream ? [WORD, STOP, DONE] : [ANSWER.slice(0, 9), ANSWER.slice(9)]
      answered(made, stream ? STREAM : JSON_TYPE, ...pieces)
      assert.deepEqual(made.heard, [0], String(stream))
    }
    const { handler, heard, push } = handlerOf()
    handler.start(500, {})
    push('x')
    assert.deepEqual(heard, [])
  })

  it('is that of a decoded body, which is read in its other form, too', () => {
    assert.equal(handlerOf().handler.decodes, true)
  })
})

describe('a plain answer that comes as a stream', () => {
  for (const [what, headers] of [
    ['says so', STREAM],
    ['does not say so', JSON_TYPE],
    ['has no type', {}],
  ] as const)
    it(`is put together: ${what}`, () => {
      const made = handlerOf()
      const end = answered(made, headers, WORD, WORD + STOP, DONE)
      const { choices } = JSON.parse(sentOf(made.written, end))
      assert.equal(choices[0].message.content, 'HiHi')
      assert.deepEqual([made.written, end.kind === 'served' && end.reader], [[], undefined])
    })

  it('fails as its events say, or where it ends too early', () => {
    const error = `data: ${JSON.stringify({ error: { code: 429, message: 'slow' } })}\n\n`
    const headers = { ...STREAM, 'retry-after': '7' }
    const limited = answered(handlerOf(), headers, WORD, error)
    assert.ok(limited.kind === 'failed')
    assert.deepEqual([limited.failure.code, limited.failure.retryAfterMs], ['upstream_rate_limited', 7000])
    assert.deepEqual(failureOf(answered(handlerOf(), STREAM, WORD))?.[0], 'upstream_error')
    assert.deepEqual(failureOf(answered(handlerOf(), STREAM, STOP + DONE))?.[0], 'empty_completion')
  })

  it('is none at an endpoint that does not stream', () => {
    const end = answered(handlerOf({}, embeddings as never), JSON_TYPE, WORD, STOP, DONE)
    assert.match(String(failureOf(end)?.[1]), /is not JSON/)
    const typed = handlerOf({}, embeddings as never).handler.start(200, STREAM)
    assert.match(String(failureOf(typed)?.[1]), /has the type "text\/event-stream;/)
  })
})

describe('a stream that comes as a plain answer', () => {
  it('is written as a stream, whose end waits', () => {
    const made = handlerOf({ stream: true })
    const end = answered(made, JSON_TYPE, ANSWER.slice(0, 9), ANSWER.slice(9))
    assert.match(made.written.join(''), /"content":"Hi"/)
    assert.doesNotMatch(made.written.join(''), /"finish_reason":"stop"|DONE/)
    assert.match(sentOf(made.written, end), /"finish_reason":"stop"[\s\S]*\[DONE\]\n\n$/)
    assert.ok(made.handler.reader)
    assert.equal(end.kind === 'served' && end.reader, made.handler.reader)
  })

  it('fails as any answer does, and before anything is sent', () => {
    const failed = (text: string, headers: IncomingHttpHeaders = JSON_TYPE) => {
      const made = handlerOf({ stream: true })
      const end = answered(made, headers, text)
      assert.deepEqual(made.written, [])
      assert.ok(end.kind === 'failed')
      return [end.failure.code, end.failure.retryAfterMs, end.committed]
    }
    const limited = JSON.stringify({ error: { code: 429, message: 'slow' } })
    const headers = { ...JSON_TYPE, 'retry-after': '7' }
    assert.deepEqual(failed(limited, headers), ['upstream_rate_limited', 7000, false])
    assert.deepEqual(failed(ANSWER.replace('Hi', '')), ['empty_completion', undefined, false])
    for (const text of ['{', '{}', '[]', WORD + STOP + DONE]) assert.equal(failed(text)[0], 'upstream_error')
  })

  it('keeps the integers of a tool’s input as they are written', () => {
    const made = handlerOf({ stream: true }, messages as never)
    assert.match(sentOf(made.written, answered(made, JSON_TYPE, WITH_TOOL)), /12345678901234567890/)
  })
})

describe('an answer of a line that has another endpoint', () => {
  const across = (members: object = {}) => handlerOf(members, chatCompletions, TO_MESSAGES)

  it('is translated, with the usage that the call is charged for', () => {
    const made = across()
    const end = answered(made, JSON_TYPE, MESSAGE)
    const { choices, usage } = JSON.parse(sentOf([], end))
    assert.deepEqual([choices[0].message.content, choices[0].finish_reason], ['Hi', 'stop'])
    assert.deepEqual([usage.prompt_tokens, usage.completion_tokens], [7, 2])
    assert.equal(made.handler.skipped, 0)
    assert.ok(end.kind === 'served' && end.reading)
  })

  it('keeps the integers of a tool’s input as they are written', () => {
    assert.match(sentOf([], answered(across(), JSON_TYPE, WITH_TOOL)), /12345678901234567890/)
  })

  it('tells the usage of a stream that is translated where that was asked for', () => {
    const made = across({ stream: true, body: { json: { stream_options: { include_usage: true } } } })
    const end = answered(made, STREAM, ...eventsOf({ protocol: 'anthropic', stream: true }, ['Hi']))
    assert.match(sentOf(made.written, end), /"prompt_tokens":7,"completion_tokens":1/)
  })

  it('tells how many of its parts were left out, of a stream or a whole answer', () => {
    const whole = across()
    const odd = MESSAGE.replace('"content":[', '"content":[{"type":"weather_report","sun":true},')
    answered(whole, JSON_TYPE, odd)
    assert.equal(whole.handler.skipped, 1)
    const streamed = across({ stream: true })
    const weather = 'event: weather_report\ndata: {"type":"weather_report","sun":true}\n\n'
    const events = eventsOf({ protocol: 'anthropic', stream: true }, ['Hi'])
    answered(streamed, STREAM, ...events.slice(0, -1), weather, ...events.slice(-1))
    assert.equal(streamed.handler.skipped, 1)
  })

  it('is translated event by event, and ends as the caller’s protocol does', () => {
    const made = across({ stream: true })
    const events = eventsOf({ protocol: 'anthropic', stream: true }, ['Hel', 'lo'])
    const end = answered(made, STREAM, ...events)
    assert.match(made.written.join(''), /"content":"Hel"[\s\S]*"content":"lo"/)
    assert.doesNotMatch(made.written.join(''), /"finish_reason":"stop"|DONE/)
    assert.match(sentOf(made.written, end), /"finish_reason":"stop"[\s\S]*\[DONE\]\n\n$/)
  })

  it('names no member of the request that the caller did not send', () => {
    const refused = (made: ReturnType<typeof handlerOf>) => {
      made.handler.start(400, {})
      made.push('{"error":{"message":"no","param":"max_tokens","type":"invalid_request_error"}}')
      const end = made.handler.finish()
      assert.ok(end.kind === 'failed')
      return end.failure.param
    }
    assert.equal(refused(handlerOf()), 'max_tokens')
    assert.equal(refused(across()), undefined)
  })

  it('fails where it cannot be translated', () => {
    const broken: Translation = {
      ...TO_MESSAGES,
      answer() {
        throw new SyntaxError('no counterpart')
      },
    }
    const end = answered(handlerOf({}, chatCompletions, broken), JSON_TYPE, MESSAGE)
    assert.deepEqual(failureOf(end)?.[0], 'upstream_error')
    assert.match(String(failureOf(end)?.[1]), /no counterpart/)
  })

  it('numbers its events where the caller’s protocol does', () => {
    const begun = responseEvents(['Hi', ' there']).slice(0, -1)
    for (const translation of [undefined, AS_CHAT]) {
      const made = handlerOf({ stream: true }, responses as never, translation)
      made.handler.start(200, STREAM)
      for (const event of translation ? [WORD] : begun) made.push(event)
      made.handler.flush()
      const numbers = made.written.join('').match(/(?<="sequence_number":)\d+/g) ?? []
      assert.ok(numbers.length > 1)
      assert.equal(made.handler.nextEventNumber, Number(numbers.at(-1)) + 1)
    }
  })

  it('has no number for its next event where the protocol has none', () => {
    const made = across({ stream: true })
    assert.equal(made.handler.nextEventNumber, undefined)
    made.handler.start(200, STREAM)
    assert.equal(made.handler.nextEventNumber, undefined)
    assert.equal(made.handler.breakOff(BROKEN).kind, 'failed')
    assert.equal(handlerOf({}, messages as never).handler.nextEventNumber, undefined)
  })
})
