import assert from 'node:assert/strict'
import { it } from 'node:test'
import { ERROR_CODES, type ErrorCode } from '../../lib/core/errors/index.ts'
import { answer, eventsOf, MODES, type Mode, modeName, OPENAI } from '../support/exchange.ts'
import { answerJson, chatAnswer, stream, type UpstreamScript } from '../support/scripted-upstream.ts'
import { onEveryBackend } from './backends.ts'
import { ChainRun, type ChainSetting, LIMITS, remaining } from './chain-run.ts'

/** A way in which `route` ends a call that was admitted, with nothing produced. */
interface LateRefusal {
  readonly name: string
  readonly code: ErrorCode
  readonly outcome: 'refused' | 'failed'
  readonly setting?: (mode: Mode) => Partial<ChainSetting>
  /** Members of the body. */
  readonly body?: (mode: Mode) => Record<string, unknown>
  /** A call before it that ends so; it is counted too. */
  readonly precededBy?: ErrorCode
  /** Requests that reached the lines in the end. */
  readonly upstreamRequests: number
  /** Defaults to all. */
  readonly modes?: readonly Mode[]
}

const says =
  (status: number, headers: Record<string, string> = {}): (() => { script: UpstreamScript }) =>
  () => ({ script: (res) => answerJson(res, status, { error: { message: 'no' } }, headers) })

const TOOLS = {
  openai: [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }],
  anthropic: [{ name: 'look', input_schema: { type: 'object' } }],
}

const LATE: readonly LateRefusal[] = [
  {
    name: 'no_candidate',
    code: 'no_candidate',
    outcome: 'refused',
    body: () => ({ provider: { only: ['nobody'] } }),
    upstreamRequests: 0,
  },
  {
    name: 'unsupported_feature',
    code: 'unsupported_feature',
    outcome: 'refused',
    setting: () => ({ line: { features: ['stream'] } }),
    body: ({ protocol }) => ({ tools: TOOLS[protocol] }),
    upstreamRequests: 0,
  },
  {
    name: 'context_too_long for the lines that the caller allows',
    code: 'context_too_long',
    outcome: 'refused',
    setting: () => ({ line: { contextWindow: 4000 }, moreLines: [{}] }),
    body: () => ({ max_tokens: 5000, provider: { ignore: ['more-0'] } }),
    upstreamRequests: 0,
  },
  {
    name: 'circuit_open',
    code: 'circuit_open',
    outcome: 'refused',
    setting: () => ({
      ...says(500)(),
      line: { circuit: { minimumCalls: 1, errorPercent: 50, resetMs: 60_000 } },
    }),
    precededBy: 'upstream_error',
    upstreamRequests: 1,
  },
  {
    name: 'upstream_rate_limited, the line resting',
    code: 'upstream_rate_limited',
    outcome: 'refused',
    setting: says(429, { 'retry-after': '30' }),
    precededBy: 'upstream_rate_limited',
    upstreamRequests: 1,
  },
  {
    name: 'upstream_rate_limited',
    code: 'upstream_rate_limited',
    outcome: 'failed',
    setting: says(429),
    upstreamRequests: 1,
  },
  {
    name: 'upstream_error',
    code: 'upstream_error',
    outcome: 'failed',
    setting: says(500),
    upstreamRequests: 1,
  },
  {
    name: 'upstream_overloaded',
    code: 'upstream_overloaded',
    outcome: 'failed',
    setting: says(503),
    upstreamRequests: 1,
  },
  {
    name: 'all_candidates_failed',
    code: 'all_candidates_failed',
    outcome: 'failed',
    setting: () => ({
      script: (res, _request, index) => answerJson(res, index === 0 ? 500 : 503, {}),
      moreLines: [{}],
    }),
    upstreamRequests: 2,
  },
  {
    name: 'upstream_timeout',
    code: 'upstream_timeout',
    outcome: 'failed',
    setting: () => ({ script: () => {}, line: { timeouts: { firstByteMs: 60 } } }),
    upstreamRequests: 1,
  },
  {
    name: 'empty_completion',
    code: 'empty_completion',
    outcome: 'failed',
    setting: (mode) => ({
      script: (res) => (mode.stream ? stream(res, eventsOf(mode, [])) : answer(res, mode, '')),
    }),
    upstreamRequests: 1,
  },
  {
    name: 'content_filtered',
    code: 'content_filtered',
    outcome: 'failed',
    setting: () => ({
      script: (res) => answerJson(res, 400, { error: { code: 'content_policy_violation', message: 'no' } }),
    }),
    upstreamRequests: 1,
  },
  {
    name: 'content_filtered, said with 200',
    code: 'content_filtered',
    outcome: 'failed',
    setting: () => ({
      script: (res) =>
        chatAnswer(res, '', { choices: [{ index: 0, message: null, finish_reason: 'content_filter' }] }),
    }),
    upstreamRequests: 1,
    modes: [OPENAI],
  },
]

onEveryBackend('a call that route ends with nothing produced', (fresh, modesOf) => {
  for (const [i, row] of LATE.entries()) {
    for (const mode of modesOf(i, row.modes ?? MODES)) {
      it(`gives back its slot and its key, and stays counted: ${row.name} (${modeName(mode)})`, async (t) => {
        const run = await ChainRun.start(t, fresh(), { mode, ...row.setting?.(mode) })
        const body = run.body(row.body?.(mode))
        if (row.precededBy) {
          const before = await run.exchange(body)
          run.assertCode(before, row.precededBy, ERROR_CODES[row.precededBy].status)
          await run.book(before.requestId)
        }
        const refused = await run.exchange(body, { key: run.key })
        run.assertCode(refused, row.code, ERROR_CODES[row.code].status)
        // At once, with the account's one slot and the same key.
        const again = await run.gateway.post(mode, run.body({ model: 'spare' }), { key: run.key })
        assert.equal(again.status, 200, await again.clone().text())
        await again.text()

        const entry = await run.book(refused.requestId)
        await run.book(again.headers.get('x-request-id') ?? '')
        const requests = LIMITS.key.rpm - (row.precededBy ? 2 : 1)
        assert.equal(remaining(mode, refused.headers).requests, requests)
        await run.assertCounted()
        assert.equal(run.upstream.requests.length, row.upstreamRequests)
        const { error_code, outcome, limit, idempotency_key, original_request_id, response_body, usage } =
          entry
        assert.deepEqual(
          { error_code, outcome, limit, idempotency_key, original_request_id, response_body, usage },
          {
            error_code: row.code,
            outcome: row.outcome,
            limit: null,
            idempotency_key: run.key,
            original_request_id: null,
            response_body: refused.text,
            usage: null,
          },
        )
      })
    }
  }
})
