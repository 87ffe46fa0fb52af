import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { describe, it } from 'node:test'
import { embeddings } from '../../../../lib/core/operations/embeddings.ts'
import { chatCompletions, messages, responses } from '../../../../lib/core/operations/index.ts'
import { type Translation, translationsOf } from '../../../../lib/core/translate/index.ts'
import { eventsOf } from '../../../support/exchange.ts'
import { responseEvents } from '../../../support/responses-upstream.ts'
import {
  ANSWER,
  DONE,
  failureOf,
  JSON_TYPE,
  lineAnswer,
  STOP,
  STREAM,
  sentOf,
  WORD,
} from '../support/line-answers.ts'

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

describe('the first byte of an answer', () => {
  it('is measured once, when it comes, and of a success alone', async () => {
    for (const stream of [false, true]) {
      const { made } = lineAnswer({ stream })
      const [first, ...more] = stream ? [WORD, STOP, DONE] : [ANSWER.slice(0, 9), ANSWER.slice(9)]
      await made.answer(200, stream ? STREAM : JSON_TYPE, first)
      const measured = () => made.speeds.filter(({ length }) => length === 1)
      assert.equal(measured().length, 1, String(stream))
      await made.more(...more)
      made.over()
      await made.finished
      assert.equal(measured().length, 1, String(stream))
    }
    const { made, answers } = lineAnswer()
    await answers(500, {}, ['x'], 'ends')
    assert.deepEqual(made.speeds, [])
  })
})

describe('a plain answer that comes as a stream', () => {
  for (const [what, headers] of [
    ['says so', STREAM],
    ['does not say so', JSON_TYPE],
    ['has no type', {}],
  ] as const)
    it(`is put together: ${what}`, async () => {
      const { answered, written } = lineAnswer()
      const end = await answered(headers, WORD, WORD + STOP, DONE)
      const { choices } = JSON.parse(sentOf([], end))
      assert.equal(choices[0].message.content, 'HiHi')
      assert.deepEqual([written(), end.kind === 'served' && end.stream], [[], undefined])
    })

  it('fails as its events say, or where it ends too early', async () => {
    const error = `data: ${JSON.stringify({ error: { code: 429, message: 'slow' } })}\n\n`
    const headers = { ...STREAM, 'retry-after': '7' }
    const limited = await lineAnswer().answered(headers, WORD, error)
    assert.ok(limited.kind === 'failed')
    assert.deepEqual([limited.failure.code, limited.failure.retryAfterMs], ['upstream_rate_limited', 7000])
    assert.deepEqual(failureOf(await lineAnswer().answered(STREAM, WORD))?.[0], 'upstream_error')
    assert.deepEqual(failureOf(await lineAnswer().answered(STREAM, STOP + DONE))?.[0], 'empty_completion')
  })

  it('is none at an endpoint that does not stream', async () => {
    const end = await lineAnswer({}, embeddings).answered(JSON_TYPE, WORD, STOP, DONE)
    assert.match(String(failureOf(end)?.[1]), /is not JSON/)
    const typed = await lineAnswer({}, embeddings).answered(STREAM)
    assert.match(String(failureOf(typed)?.[1]), /has the type "text\/event-stream;/)
  })
})

describe('a stream that comes as a plain answer', () => {
  it('is written as a stream, whose end waits', async () => {
    const { answered, written } = lineAnswer({ stream: true })
    const end = await answered(JSON_TYPE, ANSWER.slice(0, 9), ANSWER.slice(9))
    assert.match(written().join(''), /"content":"Hi"/)
    assert.doesNotMatch(written().join(''), /"finish_reason":"stop"|DONE/)
    assert.match(sentOf(written(), end), /"finish_reason":"stop"[\s\S]*\[DONE\]\n\n$/)
    assert.ok(end.kind === 'served' && end.stream)
  })

  it('fails as any answer does, and before anything is sent', async () => {
    const failed = async (text: string, headers: IncomingHttpHeaders = JSON_TYPE) => {
      const { answered, written } = lineAnswer({ stream: true })
      const end = await answered(headers, text)
      assert.deepEqual(written(), [])
      assert.ok(end.kind === 'failed')
      return [end.failure.code, end.failure.retryAfterMs, end.committed]
    }
    const limited = JSON.stringify({ error: { code: 429, message: 'slow' } })
    const headers = { ...JSON_TYPE, 'retry-after': '7' }
    assert.deepEqual(await failed(limited, headers), ['upstream_rate_limited', 7000, false])
    assert.deepEqual(await failed(ANSWER.replace('Hi', '')), ['empty_completion', undefined, false])
    for (const text of ['{', '{}', '[]', WORD + STOP + DONE])
      assert.equal((await failed(text))[0], 'upstream_error')
  })

  it('keeps the integers of a tool’s input as they are written', async () => {
    const { answered, written } = lineAnswer({ stream: true }, messages)
    const end = await answered(JSON_TYPE, WITH_TOOL)
    assert.match(sentOf(written(), end), /12345678901234567890/)
  })
})

describe('an answer of a line that has another endpoint', () => {
  const across = (members: Parameters<typeof lineAnswer>[0] = {}) =>
    lineAnswer(members, chatCompletions, TO_MESSAGES)

  it('is translated, with the usage that the call is charged for', async () => {
    const end = await across().answered(JSON_TYPE, MESSAGE)
    const { choices, usage } = JSON.parse(sentOf([], end))
    assert.deepEqual([choices[0].message.content, choices[0].finish_reason], ['Hi', 'stop'])
    assert.deepEqual([usage.prompt_tokens, usage.completion_tokens], [7, 2])
    assert.equal(end.record?.skipped, 0)
    assert.ok(end.kind === 'served' && end.reading)
  })

  it('keeps the integers of a tool’s input as they are written', async () => {
    assert.match(sentOf([], await across().answered(JSON_TYPE, WITH_TOOL)), /12345678901234567890/)
  })

  it('contains the usage of a translated stream where that was asked for', async () => {
    const made = across({ stream: true, body: { json: { stream_options: { include_usage: true } } } })
    const end = await made.answered(STREAM, ...eventsOf({ protocol: 'anthropic', stream: true }, ['Hi']))
    assert.match(sentOf(made.written(), end), /"prompt_tokens":7,"completion_tokens":1/)
  })

  it('contains how many of its parts were left out, of a stream or a whole answer', async () => {
    const odd = MESSAGE.replace('"content":[', '"content":[{"type":"weather_report","sun":true},')
    assert.equal((await across().answered(JSON_TYPE, odd)).record?.skipped, 1)
    const streamed = across({ stream: true })
    const weather = 'event: weather_report\ndata: {"type":"weather_report","sun":true}\n\n'
    const events = eventsOf({ protocol: 'anthropic', stream: true }, ['Hi'])
    const end = await streamed.answered(STREAM, ...events.slice(0, -1), weather, ...events.slice(-1))
    assert.equal(end.record?.skipped, 1)
  })

  it('is translated event by event, and ends as the caller’s protocol does', async () => {
    const made = across({ stream: true })
    const events = eventsOf({ protocol: 'anthropic', stream: true }, ['Hel', 'lo'])
    const end = await made.answered(STREAM, ...events)
    assert.match(made.written().join(''), /"content":"Hel"[\s\S]*"content":"lo"/)
    assert.doesNotMatch(made.written().join(''), /"finish_reason":"stop"|DONE/)
    assert.match(sentOf(made.written(), end), /"finish_reason":"stop"[\s\S]*\[DONE\]\n\n$/)
  })

  it('names no member of the request that the caller did not send', async () => {
    const refused = async ({ answers }: ReturnType<typeof lineAnswer>) => {
      const said = '{"error":{"message":"no","param":"max_tokens","type":"invalid_request_error"}}'
      const end = await answers(400, {}, [said], 'ends')
      assert.ok(end.kind === 'failed')
      return end.failure.param
    }
    assert.equal(await refused(lineAnswer()), 'max_tokens')
    assert.equal(await refused(across()), undefined)
  })

  it('fails where it cannot be translated', async () => {
    const broken: Translation = {
      ...TO_MESSAGES,
      answer() {
        throw new SyntaxError('no counterpart')
      },
    }
    const end = await lineAnswer({}, chatCompletions, broken).answered(JSON_TYPE, MESSAGE)
    assert.deepEqual(failureOf(end)?.[0], 'upstream_error')
    assert.match(String(failureOf(end)?.[1]), /no counterpart/)
  })

  it('numbers its events where the caller’s protocol does', async () => {
    const begun = responseEvents(['Hi', ' there']).slice(0, -1)
    for (const translation of [undefined, AS_CHAT]) {
      const { answered, written } = lineAnswer({ stream: true }, responses, translation)
      const end = await answered(STREAM, ...(translation ? [WORD] : begun))
      const numbers =
        written()
          .join('')
          .match(/(?<="sequence_number":)\d+/g) ?? []
      assert.ok(numbers.length > 1)
      assert.equal(end.stream?.nextEventNumber, Number(numbers.at(-1)) + 1)
    }
  })

  it('has no number for its next event where the protocol has none', async () => {
    const end = await across({ stream: true }).answers(200, STREAM, [], 'breaks off')
    assert.equal(end.kind, 'failed')
    assert.ok(end.stream)
    assert.equal(end.stream.nextEventNumber, undefined)
  })
})
