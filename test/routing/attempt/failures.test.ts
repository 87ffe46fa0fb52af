import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  brokenOff,
  connectionFailure,
  emptyAnswer,
  faultOf,
  filteredAnswer,
  goneFromLine,
  malformed,
  timedOut,
  unreadable,
} from '../../../lib/routing/attempt/failure.ts'

const errorOf = (message: string, members: object = {}) => Object.assign(new Error(message), members)

describe('the failure of an attempt', () => {
  it('by a clock counts against the line only during the connect', () => {
    for (const [phase, fault, words] of [
      ['connect', 'line', 'connect'],
      ['first_byte', 'model', 'first-byte'],
      ['idle', 'model', 'idle'],
      ['total', 'model', 'total'],
    ] as const)
      assert.deepEqual(timedOut(phase, 1234.6), {
        code: 'upstream_timeout',
        retryable: true,
        fault,
        detail: `the ${words} clock ran out after 1235 ms`,
        timeoutPhase: phase,
      })
  })

  it('after the first output is an interrupted answer, which is not retried on another line', () => {
    const late = timedOut('idle', 5)
    assert.deepEqual(brokenOff(late), { ...late, retryable: false })
    const error = { message: 'no', type: 'x' } as never
    assert.deepEqual(brokenOff({ ...emptyAnswer(), error }), {
      ...{ code: 'upstream_error', retryable: false, fault: 'model', detail: 'no output' },
      error,
    })
    assert.equal(brokenOff({ ...emptyAnswer(), detail: null }).detail, 'empty_completion')
  })

  it('counts against neither line nor model if the answer is empty, stopped or gone', () => {
    for (const [failure, code, retryable] of [
      [emptyAnswer(), 'empty_completion', true],
      [filteredAnswer(), 'content_filtered', false],
      [goneFromLine(), 'not_found', false],
    ] as const)
      assert.deepEqual([failure.code, failure.retryable, failure.fault], [code, retryable, null])
  })

  it('by an unreadable answer quotes none of it', () => {
    for (const text of ['{"secret":', 'secret', '[1,]']) {
      let error: unknown
      try {
        JSON.parse(text)
      } catch (thrown) {
        error = thrown
      }
      assert.deepEqual(unreadable(error), malformed('a part of it is not valid JSON'))
    }
    assert.equal(faultOf(new SyntaxError('the answer has no "data"')), 'the answer has no "data"')
    assert.equal(faultOf('thrown'), 'thrown')
  })
})

describe('the failure of a connection', () => {
  it('counts against the line if it could not be opened, and else against the model', () => {
    const error = errorOf('connect ECONNREFUSED 10.0.0.7:443', { code: 'ECONNREFUSED', syscall: 'connect' })
    for (const [connecting, fault] of [
      [true, 'line'],
      [false, 'model'],
    ] as const)
      assert.deepEqual(connectionFailure(error, connecting), {
        ...{ code: 'upstream_error', retryable: true, fault },
        detail: 'ECONNREFUSED: connect',
      })
  })

  it('for lack of a resource of this process counts against none', () => {
    for (const code of ['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM'])
      for (const connecting of [true, false])
        assert.equal(connectionFailure(errorOf('x', { code, syscall: 'connect' }), connecting).fault, null)
  })

  it('by the clock of undici is one of connecting', () => {
    for (const connecting of [true, false]) {
      const { code, fault, timeoutPhase } = connectionFailure(
        errorOf('x', { code: 'UND_ERR_CONNECT_TIMEOUT' }),
        connecting,
      )
      assert.deepEqual([code, fault, timeoutPhase], ['upstream_timeout', 'line', 'connect'])
    }
  })

  const details: [error: Error, detail: string][] = [
    [errorOf('other side closed', { code: 'UND_ERR_SOCKET' }), 'UND_ERR_SOCKET: other side closed'],
    [
      errorOf('Invalid header', { code: 'HPE_INVALID_HEADER_TOKEN' }),
      'HPE_INVALID_HEADER_TOKEN: Invalid header',
    ],
    [errorOf('', { code: 'UND_ERR_SOCKET' }), 'UND_ERR_SOCKET: Error'],
    [
      errorOf('Host: secret.example. is not in the cert', { code: 'ERR_TLS_CERT_ALTNAME_INVALID' }),
      'ERR_TLS_CERT_ALTNAME_INVALID',
    ],
    [
      errorOf('getaddrinfo ENOTFOUND secret.example', { code: 'ENOTFOUND', syscall: 'getaddrinfo' }),
      'ENOTFOUND: getaddrinfo',
    ],
    [errorOf(''), 'Error'],
  ]
  for (const [error, detail] of details)
    it(`is described without an address: ${detail}`, () =>
      assert.equal(connectionFailure(error, true).detail, detail))
})
