import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ErrorCode } from '../../../lib/core/errors/index.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { exchange, gatewayFor, type Mode, OPENAI, OPENAI_STREAM } from '../../support/exchange.ts'
import { KEY } from '../../support/gateway.ts'
import { startUpstream } from '../../support/scripted-upstream.ts'

interface Row {
  reason: string
  /** Members of the line that is removed. */
  line: Record<string, unknown>
  extra?: Record<string, unknown>
  config?: Record<string, unknown>
  mode?: Mode
  detail: RegExp
  code: ErrorCode
  status: number
}

const key = { id: 'key_acme', account: 'acme', secret: KEY }
const long = { messages: [{ role: 'user', content: 'word '.repeat(4000) }] }

const ROWS: Row[] = [
  {
    reason: 'disabled',
    line: { enabled: false },
    detail: /^switched off$/,
    code: 'no_candidate',
    status: 503,
  },
  {
    reason: 'provider_constraint',
    line: { provider: 'elsewhere' },
    extra: { provider: { ignore: ['elsewhere'] } },
    detail: /^ignore: \["elsewhere"\]$/,
    code: 'no_candidate',
    status: 503,
  },
  {
    reason: 'region',
    line: { region: 'us' },
    config: { accounts: [{ id: 'acme', lineRegions: ['eu'] }], keys: [key] },
    detail: /^region us; the account allows \["eu"\]$/,
    code: 'region_denied',
    status: 403,
  },
  {
    reason: 'protocol',
    line: { protocol: 'ark' },
    detail: /^line uses ark, the call openai$/,
    code: 'no_candidate',
    status: 503,
  },
  {
    reason: 'feature',
    line: { features: ['tools'] },
    mode: OPENAI_STREAM,
    detail: /^lacks stream$/,
    code: 'unsupported_feature',
    status: 400,
  },
  {
    reason: 'feature',
    line: { features: ['stream'] },
    extra: {
      tools: [{ type: 'function', function: { name: 'f' } }],
      response_format: { type: 'json_object' },
    },
    detail: /^lacks tools, json$/,
    code: 'unsupported_feature',
    status: 400,
  },
  {
    reason: 'price_ceiling',
    line: { price: { inputPerMillion: '2', outputPerMillion: '9' } },
    extra: { provider: { max_price: { prompt: '1.5', completion: 10 } } },
    detail: /^exceeds max_price in prompt$/,
    code: 'no_candidate',
    status: 503,
  },
]

describe('a filter', async () => {
  const cleanUp = cleaningUp()
  const removed = await startUpstream()
  cleanUp.after(() => removed.close())
  const kept = await startUpstream()
  cleanUp.after(() => kept.close())

  for (const { reason, line, extra = {}, config = {}, mode = OPENAI, detail, code, status } of ROWS) {
    const traced = (eliminated: readonly { line: string; reason: string; detail: string }[] | undefined) => {
      assert.equal(eliminated?.length, 1)
      assert.equal(eliminated?.[0]?.line, 'line-0')
      assert.equal(eliminated?.[0]?.reason, reason)
      assert.match(eliminated?.[0]?.detail ?? '', detail)
    }

    it(`"${reason}" ${detail.source} removes the line; another one serves the call`, async (t) => {
      removed.requests.length = 0
      const other = { url: kept.url, region: 'eu' }
      const gateway = await gatewayFor(t, { lines: [{ url: removed.url, ...line }, other], config })
      const got = await exchange(gateway, { ...mode, stream: false }, { ...extra, stream: mode.stream })
      const { routing } = await gateway.entry(got.requestId)
      traced(routing?.eliminated)
      assert.deepEqual(
        routing?.attempts.map(({ line }) => line),
        ['line-1'],
      )
      assert.equal(removed.requests.length, 0)
    })

    it(`"${reason}" ${detail.source} removes the only line: ${code}`, async (t) => {
      const gateway = await gatewayFor(t, { lines: [{ url: removed.url, ...line }], config })
      const got = await exchange(gateway, mode, extra)
      assert.equal(got.status, status)
      assert.equal(got.errorCode, code)
      // Which line, which region and which price stay in the call log.
      assert.doesNotMatch(got.text, /line-0|provider-0|"eu"|"us"/)
      const entry = await gateway.entry(got.requestId)
      traced(entry.routing?.eliminated)
      assert.deepEqual(entry.routing?.attempts, [])
      assert.equal(entry.outcome, 'refused')
      assert.equal(removed.requests.length, 0)
    })
  }

  it('"context_window" removes a line whose window is too small; one that fits serves the call', async (t) => {
    const gateway = await gatewayFor(t, {
      lines: [
        { url: removed.url, contextWindow: 3000 },
        { url: kept.url, contextWindow: 100_000 },
      ],
    })
    const got = await exchange(gateway, OPENAI, long)
    assert.equal(got.status, 200)
    const { routing } = await gateway.entry(got.requestId)
    assert.equal(routing?.eliminated[0]?.reason, 'context_window')
    assert.match(routing?.eliminated[0]?.detail ?? '', /^a window of 3000, about \d+ needed$/)
    assert.equal(removed.requests.length, 0)
  })

  it('"context_window" includes the requested output, and determines the code when it removes the last line', async (t) => {
    const gateway = await gatewayFor(t, {
      lines: [
        { url: removed.url, contextWindow: 3000 },
        // Would fit, but an earlier filter has removed it.
        { url: kept.url, contextWindow: 100_000, enabled: false },
      ],
    })
    assert.equal((await exchange(gateway, OPENAI, { max_tokens: 2900 })).status, 200)
    const got = await exchange(gateway, OPENAI, { max_tokens: 3000 })
    assert.equal(got.status, 400)
    assert.equal(got.errorCode, 'context_too_long')
    const { routing } = await gateway.entry(got.requestId)
    assert.deepEqual(
      routing?.eliminated.map(({ reason }) => reason),
      ['context_window', 'disabled'],
    )
  })

  it('is not evaluated for a line that is already removed: the trace has the first one in the order', async (t) => {
    const all = {
      url: removed.url,
      provider: 'elsewhere',
      region: 'us',
      features: ['tools'],
      price: { inputPerMillion: '9' },
    }
    const gateway = await gatewayFor(t, {
      lines: [
        { ...all, enabled: false },
        all,
        { ...all, provider: 'here' },
        { ...all, provider: 'here', region: 'eu', protocol: 'ark' },
        { ...all, provider: 'here', region: 'eu' },
        { ...all, provider: 'here', region: 'eu', features: ['stream'], contextWindow: 10 },
        { ...all, provider: 'here', region: 'eu', features: ['stream'] },
      ],
      config: { accounts: [{ id: 'acme', lineRegions: ['eu'] }], keys: [key] },
    })
    const provider = { ignore: ['elsewhere'], max_price: { prompt: 1 } }
    const got = await exchange(gateway, OPENAI_STREAM, { provider, max_tokens: 50 })
    assert.equal(got.errorCode, 'no_candidate', 'the filter that removed the last line decides')
    const { routing } = await gateway.entry(got.requestId)
    assert.deepEqual(
      routing?.eliminated.map(({ line, reason }) => [line, reason]),
      [
        ['line-0', 'disabled'],
        ['line-1', 'provider_constraint'],
        ['line-2', 'region'],
        ['line-3', 'protocol'],
        ['line-4', 'feature'],
        ['line-5', 'context_window'],
        ['line-6', 'price_ceiling'],
      ],
    )
  })

  it('has nothing to remove if no line serves the model: no_candidate', async (t) => {
    const gateway = await gatewayFor(t, {
      lines: [{ url: removed.url, models: { other: 'x' } }],
      config: {
        models: [
          { id: 'chat', kind: 'chat' },
          { id: 'other', kind: 'chat' },
        ],
      },
    })
    const got = await exchange(gateway)
    assert.equal(got.status, 503)
    assert.equal(got.errorCode, 'no_candidate')
    assert.equal(got.headers.get('x-should-retry'), 'false')
  })
})
