import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ERROR_CODE_NAMES, ERROR_CODES, GatewayError, isErrorCode } from '../../../lib/core/errors/index.ts'
import { SPEC_CODES } from './spec-codes.ts'

describe('error table', () => {
  it('contains the codes of the specification, the one for operators, and no other', () => {
    assert.deepEqual([...ERROR_CODE_NAMES].sort(), SPEC_CODES.map(([code]) => code).sort())
  })

  for (const [code, status, tier, shouldRetry] of SPEC_CODES) {
    it(`${code}: status ${status}, tier ${tier}, x-should-retry ${shouldRetry ?? 'absent'}`, () => {
      const error = new GatewayError(code)
      assert.equal(ERROR_CODES[code].status, status)
      assert.equal(ERROR_CODES[code].tier, tier)
      assert.equal(error.code, code)
      assert.equal(error.status, status)
      assert.equal(error.tier, tier)
      assert.equal(error.headers['x-should-retry'], shouldRetry)
    })

    it(`${code}: its text is a sentence of its own that contains no amount and names no line`, () => {
      const { message } = ERROR_CODES[code]
      assert.match(message, /^[A-Z].*\.$/)
      assert.doesNotMatch(message.replaceAll('/v1/', '').replace('base64', ''), /\d/)
      assert.equal(ERROR_CODE_NAMES.filter((other) => ERROR_CODES[other].message === message).length, 1)
    })
  }

  it('distinguishes codes from other texts, inherited members included', () => {
    assert.equal(isErrorCode('rate_limited'), true)
    for (const other of ['toString', 'constructor', '__proto__', 'Rate_Limited', '', 429, null, undefined])
      assert.equal(isErrorCode(other), false)
  })
})
