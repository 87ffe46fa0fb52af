import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import type { RequestBody } from '../../../lib/core/call/index.ts'
import type { ErrorCode } from '../../../lib/core/errors/index.ts'
import type { Failure } from '../../../lib/routing/attempt/failure.ts'
import { finalErrorOf } from '../../../lib/routing/candidates/final-error.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { exchange, gatewayFor, OPENAI } from '../../support/exchange.ts'
import {
  answerJson,
  chatAnswer,
  type ScriptedUpstream,
  startUpstream,
} from '../../support/scripted-upstream.ts'

type Answer = (res: ServerResponse) => void
const error: Answer = (res) => answerJson(res, 500, {})
const unauthorized: Answer = (res) => answerJson(res, 401, {})
const overloaded: Answer = (res) => answerJson(res, 503, {})
const overloadedFor =
  (retryAfter: string, status = 503): Answer =>
  (res) =>
    answerJson(res, status, {}, { 'retry-after': retryAfter })
const empty: Answer = (res) => chatAnswer(res, '')
const silent: Answer = () => {}
const tooLong: Answer = (res) => answerJson(res, 400, { error: { code: 'context_length_exceeded' } })
const overLimit: Answer = (res) =>
  answerJson(res, 429, { error: { message: 'Request too large for x on tokens per min (TPM): Limit 9' } })
const limited =
  (seconds?: number): Answer =>
  (res) =>
    answerJson(res, 429, {}, seconds === undefined ? {} : { 'retry-after': String(seconds) })

interface Row {
  name: string
  lines: Answer[]
  code: ErrorCode
  status: number
  /** How many lines were tried; defaults to all. */
  tried?: number
  retryAfter?: string
  maxAttempts?: number
}

const ROWS: Row[] = [
  { name: 'one line: its own outcome', lines: [error], code: 'upstream_error', status: 502 },
  {
    name: 'one attempt allowed: its own outcome',
    lines: [error, error],
    maxAttempts: 1,
    tried: 1,
    code: 'upstream_error',
    status: 502,
  },
  { name: 'all timed out', lines: [silent, silent], code: 'upstream_timeout', status: 504 },
  { name: 'all overloaded', lines: [overloaded, overloaded], code: 'upstream_overloaded', status: 503 },
  {
    name: 'all overloaded: the smallest wait',
    lines: [overloadedFor('30'), overloaded, overloadedFor('9', 529)],
    code: 'upstream_overloaded',
    status: 503,
    retryAfter: '9',
  },
  {
    name: 'overloaded for a day: the longest wait that clients heed',
    lines: [overloadedFor('86400')],
    code: 'upstream_overloaded',
    status: 503,
    retryAfter: '60',
  },
  {
    name: 'another failure that asks to wait',
    lines: [overloadedFor('9', 500)],
    code: 'upstream_error',
    status: 502,
  },
  { name: 'all empty', lines: [empty, empty, empty], code: 'empty_completion', status: 502 },
  {
    name: 'more than the limit of tokens of all',
    lines: [overLimit, overLimit],
    code: 'request_too_large',
    status: 413,
  },
  {
    name: 'all rate-limited: the smallest wait',
    lines: [limited(30), limited(7), limited(12)],
    code: 'upstream_rate_limited',
    status: 429,
    retryAfter: '7',
  },
  {
    name: 'all rate-limited, one without a wait: it rests two seconds',
    lines: [limited(30), limited()],
    code: 'upstream_rate_limited',
    status: 429,
    retryAfter: '2',
  },
  { name: 'all upstream errors', lines: [error, unauthorized], code: 'all_candidates_failed', status: 502 },
  { name: 'a mixture', lines: [limited(30), overloaded], code: 'all_candidates_failed', status: 502 },
  { name: 'a mixture with a timeout', lines: [silent, empty], code: 'all_candidates_failed', status: 502 },
  {
    name: 'a line that refuses the request ends the search',
    lines: [error, tooLong, error],
    tried: 2,
    code: 'context_too_long',
    status: 400,
  },
  {
    name: 'no more than three lines by default',
    lines: [error, error, error, error],
    tried: 3,
    code: 'all_candidates_failed',
    status: 502,
  },
]

describe('the verdict after the last attempt', async () => {
  const cleanUp = cleaningUp()
  const upstreams: ScriptedUpstream[] = []
  for (let i = 0; i < 4; i++) {
    const upstream = await startUpstream()
    cleanUp.after(() => upstream.close())
    upstreams.push(upstream)
  }

  for (const { name, lines, code, status, tried, retryAfter, maxAttempts } of ROWS) {
    it(`${name}: ${code}`, async (t) => {
      const gateway = await gatewayFor(t, {
        lines: lines.map((script, i) => {
          const upstream = upstreams[i] as ScriptedUpstream
          upstream.script = script
          upstream.requests.length = 0
          return { url: upstream.url, timeouts: { firstByteMs: 1000 } }
        }),
        ...(maxAttempts !== undefined && { route: { maxAttempts } }),
      })
      const got = await exchange(gateway, OPENAI)
      assert.equal(got.status, status)
      assert.equal(got.errorCode, code)
      assert.equal(got.headers.get('retry-after'), retryAfter ?? null)
      const requests = upstreams.slice(0, lines.length).map((upstream) => upstream.requests.length)
      assert.deepEqual(
        requests,
        lines.map((_, i) => (i < (tried ?? lines.length) ? 1 : 0)),
      )
      const entry = await gateway.entry(got.requestId)
      assert.equal(entry.routing?.attempts.length, tried ?? lines.length)
      assert.deepEqual([entry.outcome, entry.error_code, entry.usage], ['failed', code, null])
    })
  }
})

describe('the refusal of a request by an upstream', () => {
  const long = `a${'.b'.repeat(100)}`
  const rows: [
    name: string,
    failure: Partial<Failure>,
    body: object,
    param: string | undefined,
    message: RegExp,
  ][] = [
    ['of a member', { param: 'top_k' }, { top_k: 1 }, 'top_k', /does not accept top_k\./],
    [
      'of a part of a member',
      { param: 'tools[0].name' },
      { tools: [] },
      'tools[0].name',
      /accept tools\[0\]\.name\./,
    ],
    [
      'of a member that the caller did not send',
      { param: 'top_k' },
      {},
      undefined,
      /accept a parameter of this/,
    ],
    ['of a member of every object', { param: 'toString' }, {}, undefined, /accept a parameter of this/],
    ['of no member', {}, { a: 1 }, undefined, /accept a parameter of this/],
    ['of a name that is none', { param: 'a b' }, { a: 1 }, undefined, /accept a parameter of this/],
    [
      'of a name with a word behind it',
      { param: 'a.b <c>' },
      { a: 1 },
      undefined,
      /accept a parameter of this/,
    ],
    ['of a name that is too long', { param: long }, { a: 1 }, undefined, /accept a parameter of this/],
    [
      'of the longest name',
      { param: long.slice(0, 200) },
      { a: 1 },
      long.slice(0, 200),
      /does not accept a\.b/,
    ],
    [
      'of a previous response',
      { code: 'not_found', param: 'previous_response_id' },
      { previous_response_id: 'r' },
      undefined,
      /^The previous response is not stored any more\. Send the conversation as input instead\.$/,
    ],
    ['of something else that is gone', { code: 'not_found', param: 'file' }, { file: 'f' }, undefined, /./],
  ]
  for (const [name, members, json, param, message] of rows)
    it(`names the member only if the caller sent it: ${name}`, () => {
      const failure: Failure = {
        code: 'invalid_request',
        retryable: false,
        fault: null,
        detail: null,
        ...members,
      }
      const refusal = finalErrorOf([failure], { json } as RequestBody)
      assert.deepEqual([refusal.code, refusal.param], [failure.code, param])
      assert.match(refusal.message, message)
      const isGone = message.source.startsWith('^The previous')
      assert.equal(/previous response is not stored/.test(refusal.message), isGone)
    })
})
