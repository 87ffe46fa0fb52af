import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { NO_TAGS } from '../../../lib/core/catalog/index.ts'
import { entry, START } from './bare-entry.ts'

const withoutTime = (parts: object = {}) => ({ ...entry(parts), duration_ms: 0 })
const NOTHING = {
  id: 'req_1',
  object: 'call',
  created_at: '2026-01-02T03:04:05.006Z',
  duration_ms: 0,
  account: null,
  key: null,
  client_ip: null,
  client_request_id: null,
  method: 'POST',
  path: '/v1/chat/completions',
  protocol: 'openai',
  model: null,
  user: null,
  tags: NO_TAGS,
  stream: false,
  status: 0,
  error_code: null,
  outcome: 'completed',
  request: null,
  routing: null,
  usage: null,
  billing: null,
  limit: null,
  idempotency_key: null,
  original_request_id: null,
  response_body: null,
}

describe('the entry of a call', () => {
  it('has null for everything that did not happen', () => assert.deepEqual(withoutTime(), NOTHING))

  it('has the caller, the purpose and the outcome', () => {
    const tags = { team: 'a' }
    const principal = { accountId: 'acme', keyId: 'k1', tags: { team: 'b' } }
    const outcome = { status: 429, errorCode: 'rate_limited', finish: 'refused' }
    const limit = { kind: 'rpm', level: 'key', subject: 'k1', limit: 5, retryAfter: 7 }
    const parts = {
      principal,
      outcome,
      limit,
      model: 'm',
      user: 'ann',
      clientIp: '::1',
      clientRequestId: 'x',
    }
    assert.deepEqual(withoutTime(parts), {
      ...NOTHING,
      account: 'acme',
      key: 'k1',
      tags: { team: 'b' },
      client_ip: '::1',
      client_request_id: 'x',
      model: 'm',
      user: 'ann',
      status: 429,
      error_code: 'rate_limited',
      outcome: 'refused',
      limit: { kind: 'rpm', level: 'key', subject: 'k1', limit: 5, retry_after: 7 },
    })
    assert.deepEqual(entry({ principal, tags }).tags, tags)
    const ending = { outcome: { status: 200, errorCode: null, finish: 'completed' }, unsent: null } as const
    assert.deepEqual(
      [entry({ outcome }, ending).status, entry({ outcome }, ending).outcome],
      [200, 'completed'],
    )
  })

  it('has a summary of the request', () => {
    const request = { stream: true, messages: 2, tools: 3, images: 4, estimatedInputTokens: 5 }
    const summary = { messages: 2, tools: 3, images: 4, estimated_input_tokens: 5 }
    const all = { ...request, maxOutputTokens: 6, provider: { only: ['a'] } }
    assert.equal(entry({ request }).stream, true)
    assert.deepEqual(entry({ request }).request, { ...summary, max_output_tokens: null, provider: null })
    assert.deepEqual(entry({ request: all }).request, {
      ...summary,
      max_output_tokens: 6,
      provider: { only: ['a'] },
    })
  })

  it('has the known counts, under their names', () => {
    const counts = {
      inputTokens: 1,
      cachedInputTokens: 2,
      cacheWriteTokens: 3,
      cacheWrite1hTokens: 4,
      audioInputTokens: 5,
      outputTokens: 6,
      audioOutputTokens: 7,
      reasoningTokens: 8,
      images: 9,
      seconds: 10,
      searchUnits: 11,
      webSearches: 12,
      minutes: 13,
      serviceTier: 'flex',
    }
    const named = {
      input_tokens: 1,
      cached_input_tokens: 2,
      cache_write_tokens: 3,
      cache_write_1h_tokens: 4,
      audio_input_tokens: 5,
      output_tokens: 6,
      audio_output_tokens: 7,
      reasoning_tokens: 8,
      images: 9,
      seconds: 10,
      search_units: 11,
      web_searches: 12,
      minutes: 13,
      service_tier: 'flex',
    }
    assert.deepEqual(entry({ usage: { ...counts, source: 'measured' } }).usage, {
      ...named,
      source: 'measured',
    })
    const some = {
      inputTokens: 0,
      images: undefined,
      source: 'bounded',
      reported: { outputTokens: 9, source: 1 },
    }
    assert.deepEqual(entry({ usage: some }).usage, {
      input_tokens: 0,
      source: 'bounded',
      reported: { output_tokens: 9, source: 1 },
    })
    assert.equal(
      'reported' in (entry({ usage: { source: 'estimated', reported: undefined } }).usage ?? {}),
      false,
    )
  })

  it('has the amounts that were held and charged, as decimals', () => {
    const none = { reserved: null, charged: null, required: null, available: null, items: [], own: undefined }
    assert.deepEqual(entry({ billing: none }).billing, {
      ...{ currency: 'USD', reserved: null, charged: null, required: null, available: null, items: [] },
    })
    const items = [{ unit: 'request', quantity: 1, price: 10_000_000n }]
    const all = { ...none, reserved: 4_000_000_000n, charged: 0n, required: 1n, available: 2n, items }
    assert.deepEqual(entry({ billing: { ...all, cost: 5_000_000n, budget: 'team' } }).billing, {
      currency: 'USD',
      reserved: '4',
      charged: '0',
      required: '0.000000001',
      available: '0.000000002',
      items: [{ unit: 'request', quantity: 1, price: '0.01' }],
      cost: '0.005',
      budget: 'team',
    })
    assert.equal('cost' in (entry({ billing: { ...all, cost: null } }).billing ?? {}), false)
  })

  it('has the response body of a call with an Idempotency-Key, or the number of parts in which it is stored separately', () => {
    const idempotency = {
      key: 'i',
      originalRequestId: 'req_0',
      responseBody: 'sent',
      partsApart: 0,
      bodyWith: (unsent: unknown) => `sent${unsent}`,
    }
    const ending = {
      outcome: { status: 200, errorCode: null, finish: 'completed' },
      unsent: ' more',
    } as const
    const { idempotency_key, original_request_id, response_body } = entry({ idempotency })
    assert.deepEqual([idempotency_key, original_request_id, response_body], ['i', 'req_0', 'sent'])
    assert.equal('response_body_parts' in entry({ idempotency }), false)
    assert.equal(entry({ idempotency }, ending).response_body, 'sent more')
    const apart = entry({ idempotency: { ...idempotency, partsApart: 2 } }, ending)
    assert.deepEqual([apart.response_body, apart.response_body_parts], [null, 2])
  })

  it('has its time to the millisecond, and how long it took, in whole milliseconds', () => {
    const times = [0, 1, 999, 1000, 1001, START - 7, START, START + 993, START + 994, 60_000]
    for (const startedAt of [...times, ...times.toReversed()])
      assert.equal(entry({ startedAt }).created_at, new Date(startedAt).toISOString())
    const took = entry({ begunAt: performance.now() - 60_000.5 }).duration_ms
    assert.ok(took >= 60_000 && took < 120_000 && Number.isInteger(took), `${took}`)
  })
})
