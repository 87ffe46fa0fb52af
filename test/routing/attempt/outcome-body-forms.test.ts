import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { exchange, gatewayFor, MODES, modeName, saidTo } from '../../support/exchange.ts'
import { type OutcomeRow, SECRET, testOutcomes } from '../../support/outcome-row.ts'
import { chatAnswerOf, startUpstream } from '../../support/scripted-upstream.ts'

const MARK = '\ufeff'

/** The forms that upstreams send an error in, besides plain JSON. */
const FORMS: Readonly<Record<string, { type: string; body(json: string): string }>> = {
  'behind a byte order mark': { type: 'application/json', body: (json) => MARK + json },
  'as an event': {
    type: 'text/event-stream',
    body: (json) => `event: error\ndata: ${json}\n\ndata: [DONE]\n\n`,
  },
  'as an event with a comment': {
    type: 'text/event-stream;charset=UTF-8',
    body: (json) => `id:1\r\nevent:error\r\n:HTTP_STATUS/400\r\ndata:${json}\r\n\r\n`,
  },
}

const ERRORS: readonly (Pick<OutcomeRow, 'code' | 'failsOver' | 'blames'> & {
  readonly status: number
  readonly error: object
})[] = [
  {
    status: 400,
    error: { type: 'invalid_request_error', code: 'context_length_exceeded', message: SECRET },
    code: 'context_too_long',
    failsOver: false,
    blames: false,
  },
  {
    status: 400,
    error: { type: 'invalid_request_error', code: 'model_not_found', message: SECRET },
    code: 'upstream_error',
    failsOver: true,
    blames: true,
  },
  {
    status: 403,
    error: { type: 'permission_error', message: `Your account has no access. ${SECRET}` },
    code: 'upstream_error',
    failsOver: true,
    blames: true,
  },
]

testOutcomes(
  'a line that sends its error in another form',
  Object.entries(FORMS).flatMap(([form, { type, body }]) =>
    ERRORS.map(({ status, error, ...row }) => ({
      ...row,
      does: `answers ${status} ${form}`,
      upstreamStatus: status,
      script: (res) =>
        void res.writeHead(status, { 'content-type': type }).end(body(JSON.stringify({ error }))),
    })),
  ),
)

const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 7, output_tokens: 3 },
}

describe('a whole answer after a byte order mark', () => {
  for (const mode of MODES) {
    it(`is accepted (${modeName(mode)})`, async (t) => {
      const json = mode.protocol === 'openai' ? chatAnswerOf('Hello') : JSON.stringify(MESSAGE)
      const upstream = await startUpstream(
        (res) => void res.writeHead(200, { 'content-type': 'application/json' }).end(MARK + json),
      )
      t.after(() => upstream.close())
      const gateway = await gatewayFor(t, { lines: [{ url: upstream.url, protocol: mode.protocol }] })
      const got = await exchange(gateway, mode)
      assert.equal(got.status, 200)
      assert.equal(saidTo(mode, { ...got, json: mode.stream ? undefined : withoutMark(got.text) }), 'Hello')
    })
  }
})

/** Reads JSON as clients do. */
const withoutMark = (text: string): unknown => JSON.parse(new TextDecoder().decode(Buffer.from(text)))
