import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ErrorCode } from '../../lib/core/errors/index.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { bodyOf, gatewayFor, OPENAI, OPENAI_STREAM } from '../support/exchange.ts'
import type { TestGateway } from '../support/gateway.ts'
import { answerJson, startUpstream, stream } from '../support/scripted-upstream.ts'

type Fault = 'line' | 'model' | 'none'
type Row = readonly [
  what: string,
  status: number,
  error: unknown,
  code: ErrorCode,
  fault: Fault,
  next: boolean,
  headers?: Record<string, string>,
  restMs?: number,
]

const says = (message: string, more: object = {}) => ({ message, ...more })
const REQUEST = ['invalid_request', 'none', false] as const
const FILTERED = ['content_filtered', 'none', false] as const
const OURS = ['upstream_error', 'line', true] as const
const MODEL = ['upstream_error', 'model', true] as const
const BUSY = ['upstream_overloaded', 'model', true] as const
const LIMITED = ['upstream_rate_limited', 'none', true] as const

/** Status, error, and what it comes to. */
const TABLE: readonly Row[] = [
  ['no words', 401, {}, ...OURS],
  ['no words', 402, {}, ...OURS],
  ['our balance', 402, says('Your credit balance is too low'), ...OURS],
  ['our key', 403, says('Incorrect API key'), ...OURS],
  ['our account', 403, says('Your account is not active'), ...OURS],
  ['our account and a policy', 403, says('Your account was disabled for policy violations'), ...OURS],
  ['permission, by its type', 403, { type: 'permission_error' }, ...OURS],
  ['permission, by its code', 403, { code: 'access_denied' }, ...OURS],
  ['flagged', 403, says('Your input was flagged'), ...FILTERED],
  ['moderation', 403, says('Your chosen model requires moderation'), ...FILTERED],
  ['policy', 403, says('Not allowed by our usage policies'), ...FILTERED],
  ['policy, by its code', 403, { code: 'content_policy_violation' }, ...FILTERED],
  ['nothing of ours', 403, says('No.'), ...REQUEST],
  ['nothing', 404, {}, ...MODEL],
  ['the model', 404, says('The model `gpt-x` does not exist', { code: 'model_not_found' }), ...MODEL],
  ['the model, as Anthropic does', 404, { type: 'not_found_error', message: 'model: claude-x' }, ...MODEL],
  ['a file', 404, says('No such File object: file-abc'), ...REQUEST],
  ['a vector store', 404, says('Vector store vs_1 not found'), ...REQUEST],
  ['a thread', 404, { code: 'thread_not_found' }, ...REQUEST],
  ['a container', 404, says('Container cntr_1 not found'), ...REQUEST],
  ['an item', 404, says("Item with id 'rs_1' not found"), ...REQUEST],
  ['a param', 404, says('Not found', { param: 'messages[0].file_id' }), ...REQUEST],
  ['an unknown model', 400, { code: 'model_not_found' }, ...MODEL],
  ['an unknown model, in words', 400, says('The model `gpt-x` does not exist'), ...MODEL],
  ['a model that lacks a feature', 400, says('This model does not support image input'), ...REQUEST],
  ['context', 400, { code: 'context_length_exceeded' }, 'context_too_long', 'none', false],
  ['context', 413, { code: 'context_length_exceeded' }, 'context_too_long', 'none', false],
  ['size', 413, {}, 'request_too_large', 'none', false],
  ['policy', 400, says('Output blocked by content filtering policy'), ...FILTERED],
  ...[400, 405, 409, 410, 415, 418, 422, 424, 431, 451, 499].map(
    (status): Row => ['anything', status, says('No.'), ...REQUEST],
  ),
  ...[500, 501, 502, 504, 520, 599].map((status): Row => ['anything', status, {}, ...MODEL]),
  ...[503, 529].map((status): Row => ['anything', status, {}, ...BUSY]),
  ['no wait', 429, {}, ...LIMITED, {}, 2000],
  ['our quota', 429, { code: 'insufficient_quota' }, ...LIMITED, {}, 2000],
  ['a wait', 429, {}, ...LIMITED, { 'retry-after': '7' }, 7000],
  ['a long wait', 429, {}, ...LIMITED, { 'retry-after': '86400' }, 60_000],
  ['an endless wait', 429, {}, ...LIMITED, { 'retry-after': '1e999' }, 60_000],
  ...['0', '-3', 'soon', 'Thu, 01 Jan 1970 00:00:00 GMT', 'NaN', '0.0'].flatMap((wait): Row[] => [
    [`a wait of ${wait}`, 429, {}, ...LIMITED, { 'retry-after': wait }, 1000],
    [`a wait of ${wait} ms`, 429, {}, ...LIMITED, { 'retry-after-ms': wait }, 1000],
  ]),
]

/** The errors that name their status under status 200. */
const NAMED: readonly Row[] = TABLE.filter(([, status]) => status !== 499 && status < 520).map(
  ([what, status, error, ...rest]) => [what, status, { ...(error as object), status }, ...rest],
)

describe('what an upstream answers', async () => {
  const cleanUp = cleaningUp()
  const bad = await startUpstream()
  cleanUp.after(() => bad.close())
  const good = await startUpstream()
  cleanUp.after(() => good.close())

  const gatewayOf = (t: Parameters<typeof gatewayFor>[0]): Promise<TestGateway> => {
    const models = { chat: 'up-chat', other: 'up-other' }
    const circuit = { minimumCalls: 1, errorPercent: 50, resetMs: 60_000 }
    return gatewayFor(t, {
      lines: [
        { url: bad.url, models, circuit },
        { url: good.url, models, circuit },
      ],
      config: {
        accounts: [{ id: 'x' }, { id: 'y' }],
        keys: [
          { id: 'kx', account: 'x', secret: 'sk-x' },
          { id: 'ky', account: 'y', secret: 'sk-y' },
        ],
        models: [
          { id: 'chat', kind: 'chat' },
          { id: 'other', kind: 'chat' },
        ],
      },
    })
  }

  /** For line, model and account: whether a call would be let through. */
  const shut = ({ config, lines }: TestGateway): string[] =>
    config.catalog.lines.flatMap((line) =>
      ['chat', 'other'].flatMap((model) =>
        ['x', 'y'].flatMap((account) => {
          const state = lines.stateOf(line)
          const admits = state.circuit.admits(account) && state.modelState(model).circuit.admits(account)
          return admits ? [] : [`${line.id} ${model} ${account}`]
        }),
      ),
    )
  const resting = ({ config, lines }: TestGateway) =>
    config.catalog.lines.flatMap((line) =>
      lines.figures(line).rests.map(({ model, rest_ms }) => ({ on: `${line.id} ${model}`, rest_ms })),
    )

  for (const [form, rows] of [
    ['plain', TABLE],
    ['plain under 200', NAMED],
    ['streamed under 200', NAMED],
  ] as const) {
    for (const [what, status, error, code, fault, next, headers = {}, restMs] of rows) {
      it(`${status} about ${what}, ${form}: ${code}, ${fault}`, async (t) => {
        const mode = form === 'streamed under 200' ? OPENAI_STREAM : OPENAI
        bad.script = async (res) => {
          if (form === 'plain') answerJson(res, status, { error }, headers)
          else if (form === 'plain under 200') answerJson(res, 200, { error }, headers)
          else {
            for (const [name, value] of Object.entries(headers)) res.setHeader(name, value)
            await stream(res, [`data: ${JSON.stringify({ error })}\n\n`])
          }
        }
        bad.requests.length = 0
        good.requests.length = 0
        const gateway = await gatewayOf(t)
        const ask = async (key: string, only?: string) => {
          const body = { ...bodyOf(mode), ...(only && { provider: { only: [only] } }) }
          const response = await gateway.post('/v1/chat/completions', body, {
            headers: { authorization: `Bearer ${key}` },
          })
          const text = await response.text()
          return { response, text, code: response.ok ? null : JSON.parse(text).error.code }
        }
        const first = await ask('sk-x', 'line-0')
        assert.equal(first.code, code)
        const entry = await gateway.entry(first.response.headers.get('x-request-id'))
        assert.deepEqual(
          entry.routing?.attempts.map(({ outcome, upstream_status }) => [outcome, upstream_status]),
          [[code, form === 'plain' ? status : 200]],
        )
        assert.equal(entry.usage, null, 'nothing is charged')
        const own = { none: [], model: ['line-0 chat x'], line: ['line-0 chat x', 'line-0 other x'] }[fault]
        assert.deepEqual(shut(gateway), own, 'only its account')
        assert.equal(bad.requests.length, 1)
        if (restMs !== undefined) {
          const [rest, ...others] = resting(gateway)
          assert.deepEqual([rest?.on, others], ['line-0 chat', []])
          assert.ok(rest && rest.rest_ms <= restMs && rest.rest_ms > restMs - 900, `${rest?.rest_ms}`)
          assert.equal(first.response.headers.get('retry-after'), String(restMs / 1000))
          gateway.lines.liftRests('line-0')
        }
        assert.deepEqual(resting(gateway), [])
        // Another account still gets through to the line, and its failure opens the circuit for all.
        const second = await ask('sk-y')
        assert.equal(bad.requests.length, 2)
        assert.equal(second.code, next ? null : code)
        assert.equal(good.requests.length, next ? 1 : 0)
        const all = {
          none: [],
          model: ['line-0 chat x', 'line-0 chat y'],
          line: ['line-0 chat x', 'line-0 chat y', 'line-0 other x', 'line-0 other y'],
        }[fault]
        assert.deepEqual(shut(gateway), all)
      })
    }
  }
})
