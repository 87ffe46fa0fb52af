import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { failureOfError, failureOfStatus } from '../../../lib/routing/attempt/classify-failure.ts'
import { attemptError } from '../../../lib/routing/attempt/exchange.ts'
import { PROMPT, ROWS } from '../support/upstream-error-rows.ts'

const json = { model: 'm', messages: [{ role: 'user', content: PROMPT }] }
const sent = { raw: Buffer.from(JSON.stringify(json)), json }

describe('the error of an upstream in the trace', () => {
  for (const { who, status = 400, headers = {}, body, told } of ROWS) {
    it(`contains the upstream’s message: ${who}`, () => {
      const [type, code, param, message] = told
      assert.deepEqual(attemptError(failureOfStatus(status, headers, body), sent), {
        type,
        code,
        param,
        message,
      })
    })
  }

  it('mentions our account only in the words of errors', () => {
    const message = 'Incorrect API key provided: sk-live-12345 of Acme Holding'
    const failure = failureOfStatus(401, {}, { error: { message, type: 'x' } })
    assert.equal(attemptError(failure, sent)?.message, 'Incorrect API key provided …')
  })

  it('is recorded for an error sent as an answer, and absent without a message', () => {
    const failure = failureOfError({ error: { code: 'invalid_prompt', message: 'Bad prompt' } })
    assert.deepEqual(attemptError(failure, sent), {
      type: null,
      code: 'invalid_prompt',
      param: null,
      message: 'Bad prompt',
    })
    for (const body of [undefined, null, {}, [], 'text', { error: null }])
      assert.equal(attemptError(failureOfStatus(400, {}, body), sent), undefined)
  })

  it('has a limited length', () => {
    const long = 'invalid_'.repeat(100_000)
    const told = attemptError(
      failureOfStatus(400, {}, { error: { type: long, code: long, param: long, message: long } }),
      sent,
    )
    assert.ok(JSON.stringify(told).length < 2000)
  })
})
