import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  ERROR_CODES,
  type ErrorCode,
  GatewayError,
  isUnforeseen,
  toGatewayError,
} from '../../../lib/core/errors/index.ts'

const SECRET = 'db-password at /srv/app.js:1'

describe('reading an error that other code has thrown', () => {
  it('leaves a GatewayError as it is', () => {
    const error = new GatewayError('key_expired')
    assert.equal(toGatewayError(error), error)
  })

  const unforeseen: [string, unknown][] = [
    ['an Error', new Error(SECRET)],
    ['a TypeError', new TypeError(SECRET)],
    ['a string', SECRET],
    ['undefined', undefined],
    ['null', null],
    ['a number', 404],
    ['a symbol', Symbol(SECRET)],
    ['a function', () => SECRET],
    ['an array', [SECRET]],
    ['a bigint', 1n],
    ['an object without a prototype', Object.create(null)],
    ['a status that is not valid', Object.assign(new Error(SECRET), { status: 200 })],
    ['a status below errors', Object.assign(new Error(SECRET), { status: 399 })],
    ['a status past errors', Object.assign(new Error(SECRET), { status: 600 })],
    ['a status in words', Object.assign(new Error(SECRET), { status: '404' })],
    ['a code without a status', Object.assign(new Error(SECRET), { code: 'key_expired' })],
    ['a type that every object inherits', { type: 'constructor', message: SECRET }],
    ['another type that every object inherits', { type: 'toString', message: SECRET }],
  ]
  for (const [what, thrown] of unforeseen) {
    it(`makes ${what} an internal_error that does not repeat it, with itself as the cause`, () => {
      const error = toGatewayError(thrown)
      assert.equal(error.code, 'internal_error')
      assert.equal(error.message, ERROR_CODES.internal_error.message)
      assert.equal(error.cause, thrown)
      assert.equal(isUnforeseen(error), true)
    })
  }

  it('is foreseen if it declares that, or if it is not an internal error', () => {
    assert.equal(isUnforeseen(new GatewayError('internal_error', { foreseen: true })), false)
    assert.equal(isUnforeseen(new GatewayError('conflict')), false)
  })

  const byStatus: [number, ErrorCode][] = [
    [400, 'invalid_request'],
    [401, 'invalid_credential'],
    [402, 'insufficient_balance'],
    [403, 'model_not_allowed'],
    [404, 'not_found'],
    [405, 'not_found'],
    [409, 'conflict'],
    [413, 'request_too_large'],
    [415, 'invalid_request'],
    [418, 'invalid_request'],
    [422, 'invalid_request'],
    [429, 'rate_limited'],
    [499, 'client_closed_request'],
    [500, 'internal_error'],
    [501, 'internal_error'],
    [502, 'upstream_error'],
    [503, 'upstream_overloaded'],
    [504, 'upstream_timeout'],
    [599, 'internal_error'],
  ]
  for (const [status, code] of byStatus) {
    it(`reads the status ${status} as ${code}`, () => {
      assert.equal(toGatewayError(Object.assign(new Error(SECRET), { status })).code, code)
      assert.equal(toGatewayError(Object.assign(new Error(SECRET), { statusCode: status })).code, code)
    })
  }

  it('gives every status from 400 to 599 an error of the same class', () => {
    for (let status = 400; status <= 599; status++) {
      const error = toGatewayError({ status, message: SECRET })
      assert.equal(Math.floor(error.status / 100), Math.floor(status / 100), String(status))
      assert.doesNotMatch(error.message, /password/)
    }
  })

  it('does not mention models for a 403 of another library', () => {
    assert.doesNotMatch(toGatewayError({ status: 403 }).message, /model|key/i)
    const claimed = toGatewayError({ status: 403, code: 'ip_not_allowed' })
    assert.equal(claimed.message, ERROR_CODES.ip_not_allowed.message)
  })

  it('accepts a code of the table that matches its status, and no other', () => {
    assert.equal(toGatewayError({ status: 403, code: 'key_expired' }).code, 'key_expired')
    assert.equal(toGatewayError({ status: 404, code: 'key_expired' }).code, 'not_found')
    assert.equal(toGatewayError({ status: 400, code: 'ECONNRESET' }).code, 'invalid_request')
  })

  it('repeats a message only if it was exposed, and never for a 5xx', () => {
    const worded = (thrown: object) => toGatewayError(thrown).message
    assert.equal(worded({ status: 400, expose: true, message: 'Name the city.' }), 'Name the city.')
    assert.equal(worded({ status: 400, expose: false, message: SECRET }), ERROR_CODES.invalid_request.message)
    assert.equal(worded({ status: 400, message: SECRET }), ERROR_CODES.invalid_request.message)
    assert.equal(worded({ status: 400, expose: 'yes', message: SECRET }), ERROR_CODES.invalid_request.message)
    assert.equal(worded({ status: 400, expose: true, message: '' }), ERROR_CODES.invalid_request.message)
    assert.equal(
      worded({ status: 400, expose: true, message: { a: 1 } }),
      ERROR_CODES.invalid_request.message,
    )
    assert.equal(worded({ status: 500, expose: true, message: SECRET }), ERROR_CODES.internal_error.message)
    assert.equal(
      worded({ status: 503, expose: true, message: SECRET }),
      ERROR_CODES.upstream_overloaded.message,
    )
  })

  it('keeps its Retry-After, and no other header', () => {
    const headers = { 'Retry-After': '7', 'set-cookie': 'a=b', 'content-type': 'text/html' }
    const error = toGatewayError({ status: 429, headers })
    assert.equal(error.headers['retry-after'], '7')
    assert.deepEqual(Object.keys(error.headers).sort(), ['retry-after', 'retry-after-ms', 'x-should-retry'])
    assert.equal(toGatewayError({ status: 503, headers: { 'RETRY-AFTER': 2 } }).retryAfterMs, 2000)
    for (const none of [undefined, null, 'retry-after: 7', 7])
      assert.equal(toGatewayError({ status: 503, headers: none }).retryAfterMs, undefined)
    for (const wait of ['-1', 'soon', 'NaN', 'Infinity'])
      assert.equal(
        toGatewayError({ status: 429, headers: { 'retry-after': wait } }).headers['retry-after'],
        '1',
      )
  })

  it("words body-parser's faults in its own text, without the body", () => {
    const fault = (type: string, status: number) =>
      toGatewayError({ type, status, expose: true, message: SECRET, body: SECRET })
    const codes: [string, number, ErrorCode][] = [
      ['entity.too.large', 413, 'request_too_large'],
      ['entity.parse.failed', 400, 'invalid_request'],
      ['encoding.unsupported', 415, 'invalid_request'],
      ['charset.unsupported', 415, 'invalid_request'],
      ['request.size.invalid', 400, 'internal_error'],
      ['request.aborted', 400, 'client_closed_request'],
    ]
    for (const [type, status, code] of codes) {
      assert.equal(fault(type, status).code, code)
      assert.doesNotMatch(fault(type, status).message, /password/)
    }
    assert.deepEqual(
      ['entity.parse.failed', 'encoding.unsupported', 'charset.unsupported'].map(
        (type) => fault(type, 400).message,
      ),
      [
        'The request body is not valid JSON.',
        'The content encoding of the body is not supported.',
        'The body must be encoded in UTF-8.',
      ],
    )
    assert.match(
      String(fault('request.size.invalid', 400).cause),
      /has read the body; mount one of them only/,
    )
  })
})
