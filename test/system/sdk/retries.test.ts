import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { before, describe, it } from 'node:test'
import { callOf } from '../../../lib/core/call/index.ts'
import { ERROR_CODE_NAMES, type ErrorCode } from '../../../lib/core/errors/index.ts'
import { authenticate, memoryKeyDirectory } from '../../../lib/middleware/authenticate/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { type AppServer, recordingLogger, serveApp } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { KEY, startGateway, type TestGateway } from '../../support/gateway.ts'
import { answerJson, chatAnswer, messageAnswer, startUpstream } from '../../support/scripted-upstream.ts'
import { recordingClient, rejection, SDKS, type SdkName } from './clients.ts'
import { SITUATIONS, type SituationGateway, startSituations } from './situations.ts'

/** Spec 7.3, written down once more: what an SDK with retries switched on may send again. */
const NEVER: readonly ErrorCode[] = [
  'missing_credential',
  'invalid_credential',
  'key_disabled',
  'key_expired',
  'key_quota_exhausted',
  'ip_not_allowed',
  'model_not_allowed',
  'invalid_request',
  'unsupported_feature',
  'context_too_long',
  'model_not_found',
  'request_too_large',
  'insufficient_balance',
  'content_filtered',
  'no_candidate',
  'role_not_allowed',
]
const AFTER_WAIT: readonly ErrorCode[] = ['rate_limited', 'concurrency_limited', 'upstream_rate_limited']
const BACKOFF: readonly ErrorCode[] = [
  'billing_unavailable',
  'quota_lease_exhausted',
  'upstream_timeout',
  'upstream_error',
  'upstream_overloaded',
  'circuit_open',
  'empty_completion',
]
/** In no tier: the header decides, else the SDK's own rule, by which 5xx are sent again and 4xx are not. */
const UNSTATED_AGAIN: readonly ErrorCode[] = [
  'idempotency_key_in_use',
  'internal_error',
  'all_candidates_failed',
]
const UNSTATED_ONCE: readonly ErrorCode[] = [
  'idempotency_key_replayed',
  'idempotency_key_reused',
  'conflict',
  'client_closed_request',
  'not_found',
  'region_denied',
]

const AGAIN = new Set([...AFTER_WAIT, ...BACKOFF, ...UNSTATED_AGAIN])
const accounts = [{ id: 'acme' }]
const keys = [{ id: 'key_acme', account: 'acme', secret: KEY }]
const WAIT_MS = 100
/** The next call must come before it has passed, on a busy machine, too. */
const OPEN_MS = 1000
const RETRIES = 2

describe('an SDK makes exactly the calls that the tier of a code allows', { concurrency: 12 }, () => {
  let app: AppServer
  const calls = new Map<string, number>()
  const cleanUp = cleaningUp()
  before(async () => {
    app = await serveApp((express) => {
      const quiet = recordingLogger()
      express.use(
        beginCall({ logger: quiet }),
        authenticate({ keys: memoryKeyDirectory({ accounts, keys }) }),
      )
      express.post(['/v1/chat/completions', '/v1/messages'], (req) => {
        const caller = String(req.headers['x-test-caller'])
        calls.set(caller, (calls.get(caller) ?? 0) + 1)
        // Every code comes with a wait, so that no SDK falls back on half a second of its own.
        throw callOf(req).refuse(caller.split(' ')[1] as ErrorCode, { retryAfterMs: WAIT_MS })
      })
      express.use(errorEnvelope())
    })
    cleanUp.after(() => app.close())
  })

  it('every code stands in one list', () => {
    const listed = [...NEVER, ...AFTER_WAIT, ...BACKOFF, ...UNSTATED_AGAIN, ...UNSTATED_ONCE]
    assert.deepEqual([...listed].sort(), [...ERROR_CODE_NAMES].sort())
  })

  for (const sdk of SDKS) {
    for (const code of ERROR_CODE_NAMES) {
      const expected = AGAIN.has(code) ? 1 + RETRIES : 1
      it(`${code}: ${expected} (${sdk})`, async () => {
        const caller = `${sdk} ${code}`
        const client = recordingClient(sdk, app.url, {
          maxRetries: RETRIES,
          defaultHeaders: { 'x-test-caller': caller },
        })
        await rejection(client.ask('chat'))
        assert.equal(calls.get(caller), expected)
        assert.equal(client.answers.length, expected)
        assertGaps(client.sentAt, WAIT_MS)
      })
    }
  }
})

describe('an SDK with retries in front of the whole chain', { concurrency: 12 }, () => {
  let all: SituationGateway
  const cleanUp = cleaningUp()
  before(async () => {
    all = await startSituations()
    cleanUp.after(() => all.close())
  })

  // The circuit is the last test's, whose wait ends with its probe.
  const situations = SITUATIONS.filter(({ code }) => code !== 'circuit_open')
  for (const sdk of SDKS) {
    for (const { code, model = 'chat', client: options, ask } of situations) {
      const expected = AGAIN.has(code) ? 2 : 1
      it(`${code}: ${expected} (${sdk})`, async () => {
        const client = recordingClient(sdk, all.gateway.url, { ...options, maxRetries: 1 })
        await rejection(client.ask(model, ask?.(sdk)))
        assert.equal(client.answers.length, expected)
        const ids = new Set(client.answers.map(({ headers }) => headers.get('x-request-id')))
        assert.equal(ids.size, expected, 'each call has an id of its own')
        for (const id of ids) assert.equal((await all.gateway.entry(id)).error_code, code)
      })
    }
  }
})

describe('an SDK that waits as long as it is asked to gets its answer', { concurrency: 4 }, () => {
  for (const sdk of SDKS) {
    const healthy = (res: ServerResponse) => (sdk === 'openai' ? chatAnswer(res) : messageAnswer(res))
    const circuit = { minimumCalls: 1, errorPercent: 1, resetMs: OPEN_MS }

    it(`upstream_rate_limited (${sdk})`, async () => {
      const upstream = await startUpstream((res, _request, index) =>
        index === 0 ? answerJson(res, 429, {}, { 'retry-after-ms': String(WAIT_MS) }) : healthy(res),
      )
      const gateway = await startGateway({ lines: [{ url: upstream.url, protocol: sdk, circuit }] })
      try {
        await assertSecondAnswers(gateway, sdk, 429, WAIT_MS)
        assert.equal(upstream.requests.length, 2)
      } finally {
        await gateway.close()
        await upstream.close()
      }
    })

    it(`circuit_open: the retry is the probe (${sdk})`, async () => {
      const upstream = await startUpstream((res, _request, index) =>
        index === 0 ? answerJson(res, 500, {}) : healthy(res),
      )
      const gateway = await startGateway({ lines: [{ url: upstream.url, protocol: sdk, circuit }] })
      try {
        await rejection(recordingClient(sdk, gateway.url).ask('chat'))
        await assertSecondAnswers(gateway, sdk, 503, OPEN_MS)
        assert.equal(upstream.requests.length, 2, 'the refused call never reached the line')
      } finally {
        await gateway.close()
        await upstream.close()
      }
    })
  }

  async function assertSecondAnswers(
    { url }: TestGateway,
    sdk: SdkName,
    status: number,
    mostMs: number,
  ): Promise<void> {
    const client = recordingClient(sdk, url, { maxRetries: 1 })
    await client.ask('chat')
    assert.deepEqual(
      client.answers.map((answer) => answer.status),
      [status, 200],
    )
    const headers = client.answers[0]?.headers
    assert.equal(headers?.get('retry-after'), '1', 'whole seconds, at least 1')
    const wait = Number(headers?.get('retry-after-ms'))
    assert.ok(wait >= 1 && wait <= mostMs, `${wait} ms`)
    assertGaps(client.sentAt, wait)
  }
})

/** Timers may fire a millisecond early. */
function assertGaps(sentAt: readonly number[], leastMs: number): void {
  for (let i = 1; i < sentAt.length; i++) {
    const gap = (sentAt[i] as number) - (sentAt[i - 1] as number)
    assert.ok(gap >= leastMs - 2, `sent again after ${gap} ms, told to wait ${leastMs}`)
  }
}
