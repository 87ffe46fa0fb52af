import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { SPEC_CODES } from './spec-codes.ts'

const wait = (retryAfterMs: number) => new GatewayError('rate_limited', { retryAfterMs }).headers

describe('Retry-After', () => {
  it('is on every 429, with at least 1 s if the wait is unknown, and on no other error by default', () => {
    for (const [code, status] of SPEC_CODES) {
      const { headers } = new GatewayError(code)
      assert.equal(headers['retry-after'], status === 429 ? '1' : undefined, code)
      assert.equal(headers['retry-after-ms'], status === 429 ? '1000' : undefined, code)
    }
  })

  it('is whole seconds rounded up, with the milliseconds beside it', () => {
    assert.deepEqual([wait(1)['retry-after'], wait(1)['retry-after-ms']], ['1', '1'])
    assert.deepEqual([wait(1000)['retry-after'], wait(1000)['retry-after-ms']], ['1', '1000'])
    assert.deepEqual([wait(1000.2)['retry-after'], wait(1000.2)['retry-after-ms']], ['2', '1001'])
    assert.deepEqual([wait(59_001)['retry-after'], wait(59_001)['retry-after-ms']], ['60', '59001'])
  })

  it('is at least 1 and never shorter than the wait, for any number', () => {
    fc.assert(
      fc.property(fc.oneof(fc.double({ max: 1e15 }), fc.constant(Infinity), fc.integer()), (ms) => {
        const headers = wait(ms)
        assert.match(headers['retry-after'] ?? '', /^[1-9]\d*$/)
        assert.ok(Number(headers['retry-after']) >= 1)
        if (Number.isFinite(ms)) assert.ok(Number(headers['retry-after']) * 1000 >= ms)
        assert.ok(Number(headers['retry-after-ms']) >= 1)
      }),
    )
  })

  it('is on a 503 with a known wait', () => {
    const { headers } = new GatewayError('circuit_open', { retryAfterMs: 2500 })
    assert.deepEqual(headers, { 'retry-after': '3', 'retry-after-ms': '2500', 'x-should-retry': 'true' })
  })
})

describe('GatewayError', () => {
  it('can declare a refusal permanent', () => {
    const { headers } = new GatewayError('rate_limited', { shouldRetry: false })
    assert.equal(headers['x-should-retry'], 'false')
    assert.equal(headers['retry-after'], '1')
  })

  it('carries further headers, and shares them with no other error', () => {
    const given = { 'x-original-request-id': 'req_1' }
    const first = new GatewayError('idempotency_key_replayed', { headers: given })
    first.headers['x-request-id'] = 'req_2'
    assert.equal(first.headers['x-original-request-id'], 'req_1')
    assert.deepEqual(given, { 'x-original-request-id': 'req_1' })
    assert.equal(new GatewayError('idempotency_key_replayed').headers['x-request-id'], undefined)
  })

  it('reports what is wrong with its arguments', () => {
    for (const [wrong, told] of [
      [[], /^GatewayError: there is no code undefined; write one of the table, such as "invalid_request"$/],
      [['text is missing'], /^GatewayError: there is no code "text is missing"; /],
      [['toString'], /^GatewayError: there is no code "toString"; /],
      [['conflict', 'it is taken'], /^GatewayError: its options must be an object, such as { message: /],
      [['conflict', null], /^GatewayError: its options must be an object/],
    ] as const)
      assert.throws(() => Reflect.construct(GatewayError, wrong), { name: 'TypeError', message: told })
  })

  it('has the status of its code, or its own, under both common names', () => {
    const { status, statusCode, expose } = new GatewayError('conflict')
    assert.deepEqual([status, statusCode, expose], [409, 409, true])
    assert.equal(new GatewayError('invalid_request', { status: 431 }).statusCode, 431)
  })

  it('names a field if its code allows it, in at most 200 characters', () => {
    const param = (code: ConstructorParameters<typeof GatewayError>[0]) =>
      new GatewayError(code, { param: 'p'.repeat(201) }).param
    for (const code of ['invalid_request', 'unsupported_feature', 'context_too_long'] as const)
      assert.equal(param(code), 'p'.repeat(200))
    assert.equal(param('conflict'), undefined)
  })

  it('has no half of a surrogate pair in its texts, at any cut', () => {
    for (let before = 0; before < 4; before++) {
      const text = `${'x'.repeat(before)}${'😀'.repeat(150)}`
      const error = new GatewayError('invalid_request', { param: text, message: text.slice(0, 101) })
      for (const [told, length] of [
        [error.param ?? '', 200],
        [error.message, 101],
      ] as const)
        assert.deepEqual([told.isWellFormed(), told.length], [true, length])
    }
  })

  it('is recognised across two copies of the package', () => {
    assert.ok(new GatewayError('conflict') instanceof GatewayError)
    for (const other of [null, undefined, 7, {}, new Error('conflict')])
      assert.equal((other as unknown) instanceof GatewayError, false)
  })

  it('is an Error that keeps its cause, and has no cause if none was given', () => {
    const cause = new Error('inside')
    const error = new GatewayError('internal_error', { cause })
    assert.ok(error instanceof Error)
    assert.equal(error.name, 'GatewayError')
    assert.equal(error.cause, cause)
    assert.equal('cause' in new GatewayError('internal_error'), false)
  })
})
