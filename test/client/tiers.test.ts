import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { RETRY_TIERS, withRetries } from '../../lib/client/index.ts'
import { callOf } from '../../lib/core/call/index.ts'
import { ERROR_CODE_NAMES, ERROR_CODES, type ErrorCode } from '../../lib/core/errors/index.ts'
import { beginCall } from '../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../lib/middleware/error-envelope/index.ts'
import { type AppServer, recordingLogger, serveApp } from '../support/app-server.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { answering, json, post, refusal } from './scripted-answers.ts'

const ATTEMPTS = 3
const soon = { attempts: ATTEMPTS, firstDelayMs: 1 }

/** In no tier of the spec: the header settles them, or the status does. */
const UNSTATED_AGAIN: readonly ErrorCode[] = [
  'idempotency_key_in_use',
  'internal_error',
  'all_candidates_failed',
]

function isRetried(code: ErrorCode): boolean {
  const { tier } = ERROR_CODES[code]
  return tier === 'after_wait' || tier === 'backoff' || UNSTATED_AGAIN.includes(code)
}

describe('the tiers of the client', () => {
  it('are those of the error table', () => {
    for (const tier of ['never', 'after_wait', 'backoff'] as const) {
      const codes = ERROR_CODE_NAMES.filter((code) => ERROR_CODES[code].tier === tier)
      assert.deepEqual([...RETRY_TIERS[tier]].sort(), codes.sort(), tier)
    }
  })
})

describe('a code of the gateway is retried as its tier says', { concurrency: 8 }, () => {
  let app: AppServer
  const calls = new Map<string, number>()
  const cleanUp = cleaningUp()
  before(async () => {
    app = await serveApp((express) => {
      express.use(beginCall({ logger: recordingLogger() }))
      express.post(['/v1/chat/completions', '/v1/messages'], (req) => {
        const code = String(req.headers['x-test-code'])
        const call = `${req.path} ${code}`
        calls.set(call, (calls.get(call) ?? 0) + 1)
        throw callOf(req).refuse(code as ErrorCode, { retryAfterMs: 1 })
      })
      express.use(errorEnvelope())
    })
    cleanUp.after(() => app.close())
  })

  for (const path of ['/v1/chat/completions', '/v1/messages']) {
    for (const code of ERROR_CODE_NAMES) {
      const expected = isRetried(code) ? ATTEMPTS : 1
      it(`${path}: ${code}: ${expected}`, async () => {
        const answer = await withRetries(fetch, soon)(app.url + path, post({}, { 'x-test-code': code }))
        assert.equal(answer.status, ERROR_CODES[code].status, 'the last answer is handed over')
        assert.ok((await answer.text()).includes('"request_id"'), 'with its body')
        assert.equal(calls.get(`${path} ${code}`), expected)
      })
    }
  }
})

describe('an answer without a code', { concurrency: 8 }, () => {
  const retried = [429, 500, 502, 503, 504]
  for (const status of [400, 401, 403, 404, 408, 409, 413, 422, 429, 499, 500, 501, 502, 503, 504, 529]) {
    const expected = retried.includes(status) ? ATTEMPTS : 1
    it(`${status}, a balancer’s page: ${expected}`, async (t) => {
      const server = await answering(t, (res) => res.writeHead(status).end('<html>'))
      const answer = await withRetries(fetch, soon)(server.url, post())
      assert.deepEqual([answer.status, await answer.text()], [status, '<html>'])
      assert.equal(server.sent.length, expected)
    })
  }

  const anthropic = {
    type: 'error',
    error: { type: 'overloaded_error', message: 'No.' },
    request_id: 'req_1',
  }
  for (const [status, shouldRetry, expected] of [
    [503, 'false', 1],
    [503, 'true', ATTEMPTS],
    [409, 'true', ATTEMPTS],
    [400, 'true', ATTEMPTS],
  ] as const) {
    it(`${status}, x-should-retry: ${shouldRetry}: ${expected}`, async (t) => {
      const server = await answering(t, json(status, anthropic, { 'x-should-retry': shouldRetry }))
      await withRetries(fetch, soon)(server.url, post())
      assert.equal(server.sent.length, expected)
    })
  }
})

describe('the code of an answer has precedence over the rest of the answer', () => {
  it('no_candidate is not retried, with any header and status', async (t) => {
    const server = await answering(t, refusal(503, 'no_candidate', { 'x-should-retry': 'true' }))
    await withRetries(fetch, soon)(server.url, post())
    assert.equal(server.sent.length, 1)
  })

  it('a code of a tier with retries is retried, with any status', async (t) => {
    const server = await answering(t, refusal(418, 'upstream_error'))
    await withRetries(fetch, soon)(server.url, post())
    assert.equal(server.sent.length, ATTEMPTS)
  })

  it('only x-should-retry: false has precedence over it, for a request that can never pass its limit', async (t) => {
    const server = await answering(
      t,
      refusal(429, 'rate_limited', { 'x-should-retry': 'false', 'retry-after': '1' }),
    )
    await withRetries(fetch, soon)(server.url, post())
    assert.equal(server.sent.length, 1)
  })

  it('an unknown code is ignored', async (t) => {
    const [again, once] = [
      await answering(t, refusal(503, 'brand_new')),
      await answering(t, refusal(400, 'toString')),
    ]
    await withRetries(fetch, soon)(again.url, post())
    await withRetries(fetch, soon)(once.url, post())
    assert.deepEqual([again.sent.length, once.sent.length], [ATTEMPTS, 1])
  })
})
