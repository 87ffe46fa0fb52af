import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { phraseOf } from '../../../lib/core/errors/client-phrases.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { PROTOCOLS, protocolByPath, readFrame } from '../../../lib/core/protocols/index.ts'
import { envelopeIn } from '../../support/answer-bodies.ts'
import { SPEC_CODES, TYPES_BY_STATUS } from './spec-codes.ts'

for (const [code, status] of SPEC_CODES) {
  const [openAiType, anthropicType] = TYPES_BY_STATUS[status]!
  const error = new GatewayError(code)
  const { message } = error

  describe(`envelope of ${code}`, () => {
    for (const name of ['openai', 'ark'] as const) {
      const expected = { error: { message, type: openAiType, code }, request_id: 'req_1' }

      it(`${name}: type ${openAiType}, with the code and the request id beside the error`, () => {
        assert.deepEqual(PROTOCOLS[name].errorBody(error, 'req_1'), expected)
      })

      it(`${name}: the event that breaks a stream off is the same envelope, one unnamed event`, () => {
        const text = PROTOCOLS[name].streamError(error, 'req_1')
        assert.match(text, /^data: .*\n\n$/)
        const { event, data } = readFrame(text)
        assert.equal(event, undefined)
        assert.deepEqual(JSON.parse(data), expected)
      })
    }

    const words = error.reason ? phraseOf(error.reason, 'anthropic') : message
    const expected = { type: 'error', error: { type: anthropicType, message: words }, request_id: 'req_1' }

    it(`anthropic: type ${anthropicType}, without a code`, () => {
      assert.deepEqual(PROTOCOLS.anthropic.errorBody(error, 'req_1'), expected)
    })

    it('anthropic: the event that breaks a stream off is named error', () => {
      const { event, data } = readFrame(PROTOCOLS.anthropic.streamError(error, 'req_1'))
      assert.equal(event, 'error')
      assert.deepEqual(JSON.parse(data), expected)
    })
  })
}

describe('optional members', () => {
  const body = (error: GatewayError) => envelopeIn(PROTOCOLS.openai.errorBody(error, 'req_1')).error

  it('has param only for a faulty field, even if one was given', () => {
    for (const [code, status] of SPEC_CODES) {
      const names = status === 400 && !code.startsWith('idempotency') && code !== 'content_filtered'
      assert.equal('param' in body(new GatewayError(code, { param: 'model' })), names, code)
    }
    assert.equal(body(new GatewayError('invalid_request', { param: 'x'.repeat(9999) })).param?.length, 200)
    assert.equal(
      body(new GatewayError('invalid_request', { param: 'messages[1].role' })).param,
      'messages[1].role',
    )
    assert.equal('param' in body(new GatewayError('invalid_request')), false)
  })

  it('has details only if some were given', () => {
    const details = { original_request_id: 'req_0' }
    assert.deepEqual(body(new GatewayError('idempotency_key_replayed', { details })).details, details)
    assert.equal('details' in body(new GatewayError('idempotency_key_replayed')), false)
  })

  it('has no param in the Anthropic-style envelope, and only the details that its SDK reads', () => {
    const details = { error_code: 'thread_not_found' }
    const told = PROTOCOLS.anthropic.errorBody(new GatewayError('not_found', { details }), 'req_1')
    assert.deepEqual(envelopeIn(told).error.details, details)
    const error = new GatewayError('invalid_request', { param: 'max_tokens', details: { a: 1 } })
    const worded = envelopeIn(PROTOCOLS.anthropic.errorBody(error, 'req_1'))
    assert.deepEqual(Object.keys(worded).sort(), ['error', 'request_id', 'type'])
    assert.deepEqual(Object.keys(worded.error).sort(), ['message', 'type'])
  })

  it('keeps a text with line breaks within one event', () => {
    const error = new GatewayError('invalid_request', { message: 'one\n\ndata: two\r\n' })
    for (const protocol of Object.values(PROTOCOLS)) {
      const text = protocol.streamError(error, 'req_1')
      assert.equal(text.indexOf('\n\n'), text.length - 2)
      assert.equal(JSON.parse(readFrame(text).data).error.message, 'one\n\ndata: two\r\n')
    }
  })
})

describe('protocol by path', () => {
  const paths: [string, string][] = [
    ['/v1/chat/completions', 'openai'],
    ['/v1/messages', 'anthropic'],
    ['/v1/messages/', 'anthropic'],
    ['/v1/messages/count_tokens', 'anthropic'],
    ['/V1/Messages', 'anthropic'],
    ['/llm/v1/messages', 'anthropic'],
    ['/v1/messages-archive', 'openai'],
    ['/v1/models', 'openai'],
    ['/v1/videos', 'openai'],
    ['/api/v3/contents/generations/tasks', 'ark'],
    ['/llm/api/v3/contents/generations/tasks/1', 'ark'],
    ['/api/v30', 'openai'],
    ['/', 'openai'],
  ]
  for (const [path, name] of paths) {
    it(`${path} is ${name}`, () => assert.equal(protocolByPath(path).name, name))
  }
})
