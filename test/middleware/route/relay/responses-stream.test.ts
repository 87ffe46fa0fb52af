import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import OpenAI from 'openai'
import { readFrame } from '../../../../lib/core/protocols/index.ts'
import { gatewayFor, readExchange } from '../../../support/exchange.ts'
import {
  EVENTS_BEFORE_WORDS,
  messageItem,
  numbered,
  responseBody,
  responseEvents,
} from '../../../support/responses-upstream.ts'
import { answerJson, startUpstream, stream, type UpstreamScript } from '../../../support/scripted-upstream.ts'
import { drain, openaiOf, rejection } from '../../../system/sdk/clients.ts'

const WORDS = ['one ', 'two ', 'three']
const WHOLE = responseEvents(WORDS)
const BEFORE = WHOLE.slice(0, EVENTS_BEFORE_WORDS)
const BEGINNING = WHOLE.slice(0, EVENTS_BEFORE_WORDS + WORDS.length)
const SECRET = 'UPSTREAM-SECRET'

const failed = (code: string) =>
  numbered([
    {
      type: 'response.failed',
      response: responseBody([], { status: 'failed', error: { code, message: SECRET } }),
    },
  ])
const errorEvent = (error: object) => numbered([{ type: 'error', ...error }])

/** A gateway over an upstream that follows a script, and a second line that always answers. */
async function twoLines(t: TestContext, script: UpstreamScript) {
  const upstream = await startUpstream(script)
  const second = await startUpstream((res, { json }) =>
    json.stream
      ? stream(res, responseEvents(['second'], { id: 'resp_2' }))
      : answerJson(res, 200, responseBody([messageItem('second')], { id: 'resp_2' })),
  )
  t.after(() => Promise.all([upstream.close(), second.close()]))
  const line = { timeouts: { idleMs: 1000, firstByteMs: 3000 }, circuit: { minimumCalls: 1000 } }
  const gateway = await gatewayFor(t, {
    lines: [upstream, second].map(({ url }) => ({ url, ...line })),
  })
  const ask = async (extra: object = {}) =>
    readExchange(await gateway.post('/v1/responses', { model: 'chat', input: 'hi', stream: true, ...extra }))
  return { upstream, second, gateway, ask }
}

describe('a stream of a response that fails before its first output', () => {
  for (const [name, script] of [
    [
      'with an error event',
      (res) => stream(res, [...BEFORE, ...errorEvent({ code: 'server_error', message: SECRET })]),
    ],
    [
      'with an error in a member of the event',
      (res) => stream(res, errorEvent({ error: { code: 'insufficient_quota', message: SECRET } })),
    ],
    ['with a response that failed', (res) => stream(res, [...BEFORE, ...failed('server_error')])],
    ['with an end', (res) => stream(res, BEFORE)],
    ['with no output', (res) => stream(res, responseEvents([], { usage: null }))],
    ['with silence', (res) => stream(res, BEFORE, { end: false })],
    ['with what is no JSON', (res) => stream(res, ['event: response.created\ndata: {\n\n'])],
  ] as const satisfies readonly (readonly [string, UpstreamScript])[]) {
    it(`${name}: another line answers, and nothing of the first is seen`, async (t) => {
      const { ask, second, gateway } = await twoLines(t, script)
      const answer = await ask()
      assert.equal(answer.status, 200)
      assert.equal(answer.text, responseEvents(['second'], { id: 'resp_2' }).join(''))
      assert.equal(second.requests.length, 1)
      const { routing } = await gateway.entry(answer.requestId)
      assert.equal(routing?.attempts.length, 2)
    })
  }

  for (const [code, refused] of [
    ['invalid_prompt', 'invalid_request'],
    ['context_length_exceeded', 'context_too_long'],
    ['image_content_policy_violation', 'content_filtered'],
    ['invalid_image_format', 'invalid_request'],
  ] as const) {
    it(`because of the request itself: ${code} is ${refused}, and no other line is asked`, async (t) => {
      const { ask, second } = await twoLines(t, (res, { json }) =>
        json.stream
          ? stream(res, [...BEFORE, ...failed(code)])
          : answerJson(res, 200, responseBody([], { status: 'failed', error: { code, message: SECRET } })),
      )
      for (const extra of [{}, { stream: false }]) {
        const answer = await ask(extra)
        assert.equal(answer.status, 400)
        assert.equal(answer.errorCode, refused)
        assert.doesNotMatch(answer.text, new RegExp(SECRET))
      }
      assert.equal(second.requests.length, 0)
    })
  }

  it('by moderation: content_filtered', async (t) => {
    const blocked = responseBody([], {
      status: 'incomplete',
      incomplete_details: { reason: 'content_filter' },
    })
    const { ask, second } = await twoLines(t, (res) =>
      stream(res, [...BEFORE, ...numbered([{ type: 'response.incomplete', response: blocked }])]),
    )
    assert.equal((await ask()).errorCode, 'content_filtered')
    assert.equal(second.requests.length, 0)
  })
})

describe('a 404 that is about the input', () => {
  it('is the request’s fault, and opens no circuit', async (t) => {
    const error = { message: "Item with id 'rs_1' not found.", type: 'invalid_request_error', param: 'input' }
    const { ask, second, gateway } = await twoLines(t, (res) => answerJson(res, 404, { error }))
    const answer = await ask()
    assert.equal(answer.errorCode, 'invalid_request')
    assert.equal(answer.envelope().error.param, 'input')
    assert.equal(second.requests.length, 0)
    const [line] = gateway.config.catalog.lines
    assert.ok(line)
    assert.equal(gateway.lines.status(line).circuit, 'closed')
  })
})

describe('a stream of a response that breaks off', () => {
  const BREAKS: readonly {
    readonly how: string
    readonly code: 'upstream_error' | 'upstream_timeout'
    readonly breaks: (res: ServerResponse) => void | Promise<void>
  }[] = [
    {
      how: 'resets the connection',
      code: 'upstream_error',
      // The sleep lets the gateway read what was sent: a reset overtakes it.
      breaks: async (res) => {
        await sleep(30)
        res.socket?.resetAndDestroy()
      },
    },
    { how: 'ends without its last event', code: 'upstream_error', breaks: (res) => void res.end() },
    {
      how: 'sends an error event',
      code: 'upstream_error',
      breaks: (res) => void res.end(errorEvent({ code: 'server_error', message: SECRET }).join('')),
    },
    {
      how: 'sends a response that failed',
      code: 'upstream_error',
      breaks: (res) => void res.end(failed('rate_limit_exceeded').join('')),
    },
    { how: 'goes silent', code: 'upstream_timeout', breaks: () => {} },
  ]

  for (const { how, code, breaks } of BREAKS) {
    const script: UpstreamScript = async (res) => {
      await stream(res, BEGINNING, { end: false })
      await breaks(res)
    }

    it(`${how}: ends with an error event of the protocol, numbered behind the others`, async (t) => {
      const { ask, second, gateway } = await twoLines(t, script)
      const answer = await ask()
      assert.equal(answer.status, 200)
      assert.equal(answer.broken, true, 'it must not look whole')
      assert.ok(answer.text.startsWith(BEGINNING.join('')))
      const { event, data } = readFrame(answer.text.slice(BEGINNING.join('').length))
      const error = JSON.parse(data)
      assert.equal(event, 'error')
      assert.equal(error.type, 'error')
      assert.equal(error.sequence_number, BEGINNING.length)
      assert.equal(error.code, code)
      assert.equal(error.param, null)
      assert.equal(error.message, error.error.message)
      assert.equal(error.error.code, code)
      assert.equal(error.error.type, 'server_error')
      assert.equal(error.request_id, answer.requestId)
      assert.doesNotMatch(answer.text, new RegExp(SECRET))
      assert.equal(second.requests.length, 0)
      const entry = await gateway.entry(answer.requestId)
      assert.equal(entry.error_code, code)
      assert.equal(entry.outcome, 'interrupted')
      assert.equal(entry.usage?.output_tokens, WORDS.length)
      assert.equal(entry.usage?.source, 'estimated')
    })

    it(`${how}: raises in the SDK behind what was said, and is not sent again`, async (t) => {
      const { upstream, second, gateway } = await twoLines(t, script)
      const client = openaiOf(gateway.url, { maxRetries: 2 })
      const ask = { model: 'chat', input: 'hi' }
      const { items, error } = await drain(await client.responses.create({ ...ask, stream: true }))
      const said = items.map((event) => (event.type === 'response.output_text.delta' ? event.delta : ''))
      assert.equal(said.join(''), WORDS.join(''))
      for (const raised of [error, await rejection(client.responses.stream(ask).finalResponse())]) {
        assert.ok(raised instanceof OpenAI.APIError, String(raised))
        assert.equal(raised.status, undefined, 'the head had said 200')
        assert.equal(raised.code, code)
        assert.equal(raised.type, 'server_error')
        assert.match(raised.requestID ?? '', /^req_/)
        assert.doesNotMatch(raised.message, new RegExp(SECRET))
      }
      assert.equal(upstream.requests.length, 2)
      assert.equal(second.requests.length, 0)
    })
  }

  it('is whole with its last event, whatever the connection does then', async (t) => {
    const { ask, gateway } = await twoLines(t, async (res) => {
      await stream(res, WHOLE, { end: false })
      await sleep(30)
      res.socket?.resetAndDestroy()
    })
    const answer = await ask()
    assert.equal(answer.text, WHOLE.join(''))
    assert.equal(answer.broken, false)
    assert.equal((await gateway.entry(answer.requestId)).usage?.source, 'measured')
  })

  it('that is incomplete by its own word is whole, and charged as reported', async (t) => {
    const cut = responseBody([messageItem('one two three')], {
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
    })
    const events = [...BEGINNING, ...numbered([{ type: 'response.incomplete', response: cut }])]
    const { ask, gateway } = await twoLines(t, (res) => stream(res, events))
    const answer = await ask()
    assert.equal(answer.text, events.join(''))
    const entry = await gateway.entry(answer.requestId)
    assert.equal(entry.outcome, 'completed')
    assert.equal(entry.usage?.output_tokens, 3)
  })
})
