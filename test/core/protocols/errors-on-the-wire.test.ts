import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ErrorCode, GatewayError } from '../../../lib/core/errors/index.ts'
import { GatewayError as OwnError } from '../../../lib/core/errors/index.ts'
import { isEventStream, PROTOCOLS, protocolByPath } from '../../../lib/core/protocols/index.ts'

/** An error of any status: the table of codes may not have all of them. */
const error = (status: number, members: object = {}) =>
  ({ status, code: 'a_code', message: 'No.', ...members }) as unknown as GatewayError
const { openai, anthropic, ark } = PROTOCOLS
const responses = protocolByPath('/v1/responses')

describe('an error, in the words of a protocol,', () => {
  const TYPES: [status: number, ofOpenAi: string, ofAnthropic: string][] = [
    [400, 'invalid_request_error', 'invalid_request_error'],
    [401, 'authentication_error', 'authentication_error'],
    [402, 'insufficient_quota', 'billing_error'],
    [403, 'permission_error', 'permission_error'],
    [404, 'not_found_error', 'not_found_error'],
    [409, 'invalid_request_error', 'invalid_request_error'],
    [413, 'invalid_request_error', 'request_too_large'],
    [422, 'invalid_request_error', 'invalid_request_error'],
    [429, 'rate_limit_error', 'rate_limit_error'],
    [499, 'invalid_request_error', 'invalid_request_error'],
    [500, 'server_error', 'api_error'],
    [502, 'server_error', 'api_error'],
    [503, 'server_error', 'overloaded_error'],
    [504, 'server_error', 'timeout_error'],
  ]
  for (const [status, ofOpenAi, ofAnthropic] of TYPES) {
    it(`has the type of its status, ${status}`, () => {
      for (const { errorBody } of [openai, ark, responses])
        assert.deepEqual(errorBody(error(status), 'r'), {
          error: { message: 'No.', type: ofOpenAi, code: 'a_code' },
          request_id: 'r',
        })
      assert.deepEqual(anthropic.errorBody(error(status), 'r'), {
        type: 'error',
        error: { type: ofAnthropic, message: 'No.' },
        request_id: 'r',
      })
    })
  }

  it('names its param, if the protocol has a member for it', () => {
    const told = { param: 'model', details: { error_code: 'x' } }
    const { error: ofOpenAi } = openai.errorBody(error(400, told), 'r') as { error: object }
    assert.deepEqual(ofOpenAi, { message: 'No.', type: 'invalid_request_error', code: 'a_code', ...told })
    const ofAnthropic = (details: object) =>
      (anthropic.errorBody(error(400, { ...told, details }), 'r') as { error: object }).error
    const plain = { type: 'invalid_request_error', message: 'No.' }
    assert.deepEqual(ofAnthropic(told.details), { ...plain, details: told.details })
    assert.deepEqual(ofAnthropic({ other: 1 }), plain)
  })

  it('ends a stream with an event in the form of the others', () => {
    const body = { error: { message: 'No.', type: 'server_error', code: 'a_code' }, request_id: 'r' }
    for (const { streamError } of [openai, ark])
      assert.equal(streamError(error(500), 'r', 7), `data: ${JSON.stringify(body)}\n\n`)
    assert.equal(
      anthropic.streamError(error(500), 'r', 7),
      `event: error\ndata: ${JSON.stringify(anthropic.errorBody(error(500), 'r'))}\n\n`,
    )
    const numbered = (sequence_number: number, param: string | null) => {
      const event = { type: 'error', sequence_number, code: 'a_code', message: 'No.', param }
      const { error: plain } = body
      return `event: error\ndata: ${JSON.stringify({ ...event, ...body, error: param === null ? plain : { ...plain, param } })}\n\n`
    }
    assert.equal(responses.streamError(error(500), 'r', 7), numbered(7, null))
    assert.equal(responses.streamError(error(500, { param: 'p' }), 'r'), numbered(0, 'p'))
  })

  it('is sent with the request id in the headers that its clients read', () => {
    assert.deepEqual(
      [openai, anthropic, ark, responses].map(({ name, requestIdHeaders }) => [name, ...requestIdHeaders]),
      [
        ['openai', 'x-request-id'],
        ['anthropic', 'x-request-id', 'request-id'],
        ['ark', 'x-request-id'],
        ['openai', 'x-request-id'],
      ],
    )
  })

  it('has the status of its code', () => {
    const codes: [ErrorCode, number, string][] = [
      ['model_not_found', 404, 'not_found_error'],
      ['rate_limited', 429, 'rate_limit_error'],
    ]
    for (const [code, status, type] of codes) {
      const own = new OwnError(code)
      const { error: told } = openai.errorBody(own, 'r') as { error: { type: string; code: string } }
      assert.deepEqual([own.status, told.type, told.code], [status, type, code])
    }
  })
})

describe('the protocol of a path', () => {
  const PATHS: [path: string, protocol: unknown][] = [
    ['/v1/messages', anthropic],
    ['/llm/V1/Messages/count_tokens', anthropic],
    ['/v1/messages_of', openai],
    ['/v1x/messages', openai],
    ['/v1/responses', responses],
    ['/x/v1/RESPONSES/resp_1', responses],
    ['/v1/responses_of', openai],
    ['/api/v3', ark],
    ['/x/API/v3/contents', ark],
    ['/api/v30', openai],
    ['/v1/chat/completions', openai],
    ['/', openai],
  ]
  for (const [path, protocol] of PATHS)
    it(`is found: ${path}`, () => assert.equal(protocolByPath(path), protocol))
})

describe('a stream of events', () => {
  it('is known by its content type', () => {
    for (const type of ['text/event-stream', 'Text/Event-Stream; charset=utf-8'])
      assert.equal(isEventStream(type), true)
    for (const type of [undefined, '', 'application/json', 'x text/event-stream', 'text/event-streams'])
      assert.equal(isEventStream(type), false)
  })
})
