import type { ErrorCode } from '../../../lib/core/errors/index.ts'
import { ANTHROPIC_STREAM, eventsOf, OPENAI_STREAM } from '../../support/exchange.ts'
import { type OutcomeRow, SECRET, testOutcomes } from '../../support/outcome-row.ts'
import { messageEvent, stream } from '../../support/scripted-upstream.ts'

const chat = (error: unknown) => `data: ${JSON.stringify({ error })}\n\n`
const message = (type: string) => messageEvent('error', { error: { type, message: SECRET } })
const blamed: ErrorCode[] = ['upstream_error', 'upstream_overloaded']
const passedOn: ErrorCode[] = [...blamed, 'upstream_rate_limited']

const row = (does: string, event: string, code: ErrorCode, mode = OPENAI_STREAM): OutcomeRow => ({
  does,
  // Behind a first event without output, as real upstreams do it.
  script: (res) => stream(res, [eventsOf(mode, [])[0] ?? '', event, ...eventsOf(mode, [SECRET])]),
  code,
  upstreamStatus: 200,
  failsOver: passedOn.includes(code),
  blames: blamed.includes(code),
  modes: [mode],
})

testOutcomes('a line whose stream says an error before any output', [
  row('says a server error', chat({ type: 'server_error', message: SECRET }), 'upstream_error'),
  row('says it without an object', chat(SECRET), 'upstream_error'),
  row('says a numeric code', chat({ code: 503, message: SECRET }), 'upstream_overloaded'),
  row('says a rate limit', chat({ type: 'rate_limit_exceeded', message: SECRET }), 'upstream_rate_limited'),
  row(
    'says an error event without an "error" member',
    `event: error\ndata: ${JSON.stringify({ message: SECRET, code: 503 })}\n\n`,
    'upstream_overloaded',
  ),
  row(
    'says an object of the kind error',
    `data: ${JSON.stringify({ object: 'error', message: SECRET, code: 500 })}\n\n`,
    'upstream_error',
  ),
  row(
    'says that the context is too long',
    chat({ type: 'invalid_request_error', code: 'context_length_exceeded', message: SECRET }),
    'context_too_long',
  ),
  row('says that it is overloaded', message('overloaded_error'), 'upstream_overloaded', ANTHROPIC_STREAM),
  row('says an error of its own', message('api_error'), 'upstream_error', ANTHROPIC_STREAM),
  row('says a rate limit', message('rate_limit_error'), 'upstream_rate_limited', ANTHROPIC_STREAM),
  row(
    'says that the request is wrong',
    message('invalid_request_error'),
    'invalid_request',
    ANTHROPIC_STREAM,
  ),
])
