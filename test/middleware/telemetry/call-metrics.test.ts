import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { attempt, endedCall, STARTED, toldOf } from './ended-calls.ts'

const CHAT = {
  'gen_ai.operation.name': 'chat',
  'gen_ai.request.model': 'chat',
  'gen_ai.provider.name': 'acme-cloud',
}
const DURATIONS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
const TOKENS = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864]
const FIRST = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

describe('the metrics of a call', () => {
  it('is the call, how long it took, and its attempt', async (t) => {
    const { told, points } = await toldOf(t, endedCall())
    assert.deepEqual(points('model_gateway.calls'), [
      [
        {
          'gen_ai.operation.name': 'chat',
          'gen_ai.request.model': 'chat',
          'http.response.status_code': 200,
          'model_gateway.outcome': 'completed',
        },
        1,
      ],
    ])
    assert.deepEqual(points('gen_ai.server.request.duration'), [
      [CHAT, { count: 1, sum: 1.5, bounds: DURATIONS }],
    ])
    assert.deepEqual(points('gen_ai.client.operation.duration'), [
      [
        { ...CHAT, 'model_gateway.line': 'line-0' },
        { count: 1, sum: 2, bounds: DURATIONS },
      ],
    ])
    assert.deepEqual(points('model_gateway.attempts'), [
      [{ 'model_gateway.line': 'line-0', 'model_gateway.outcome': 'completed' }, 1],
    ])
    assert.deepEqual(points('model_gateway.calls.open'), [[{}, 0]])
    const none = [
      'retries',
      'retries.withheld',
      'eliminations',
      'tokens',
      'charges',
      'limit.refusals',
      'idempotency',
    ]
    for (const name of none) assert.deepEqual(points(`model_gateway.${name}`) ?? [], [], name)
    for (const name of ['gen_ai.client.token.usage', 'gen_ai.server.time_to_first_token'])
      assert.deepEqual(points(name) ?? [], [], name)
    assert.equal(told.get('model_gateway.calls')?.unit, '{call}')
    assert.equal(told.get('model_gateway.calls.open')?.unit, '{call}')
    assert.equal(told.get('model_gateway.attempts')?.unit, '{attempt}')
    assert.equal(told.get('gen_ai.server.request.duration')?.unit, 's')
    assert.equal(told.get('gen_ai.client.operation.duration')?.unit, 's')
  })

  it('is the first byte of a stream that was completed, from the beginning of the call', async (t) => {
    const streamed = { request: { operation: { name: 'messages' }, model: { id: 'chat' }, stream: true } }
    const behind = {
      routing: {
        attempts: [attempt({ firstByteMs: 1 }), attempt({ startedAt: STARTED + 500 })],
        eliminated: [],
      },
    }
    const { told, points } = await toldOf(
      t,
      endedCall({ ...streamed, ...behind }),
      endedCall({
        ...streamed,
        routing: { attempts: [attempt({ startedAt: STARTED - 50 })], eliminated: [] },
      }),
      endedCall({
        ...streamed,
        outcome: { status: 200, errorCode: 'upstream_error', finish: 'interrupted' },
      }),
      endedCall({ ...streamed, routing: { attempts: [attempt({ firstByteMs: null })], eliminated: [] } }),
      endedCall({
        ...streamed,
        routing: { attempts: [attempt({ startedAt: STARTED, firstByteMs: 0 })], eliminated: [] },
      }),
      endedCall({ ...streamed, routing: null }),
      endedCall(),
    )
    // 500 + 250 ms, 250 ms where the clock was set back, and one that came at once.
    assert.deepEqual(points('gen_ai.server.time_to_first_token'), [
      [CHAT, { count: 3, sum: 1, bounds: FIRST }],
    ])
    assert.equal(told.get('gen_ai.server.time_to_first_token')?.unit, 's')
  })

  it('are its tokens by kind, those of a cache only where there are some', async (t) => {
    const usage = {
      inputTokens: 50,
      cachedInputTokens: 20,
      cacheWriteTokens: 10,
      outputTokens: 7,
      source: 'measured',
    }
    const { told, points } = await toldOf(
      t,
      endedCall({ usage }),
      endedCall({ usage: { ...usage, cachedInputTokens: 0, cacheWriteTokens: 0, source: 'estimated' } }),
    )
    const tokens = (type: string, source: string, count: number) => [
      { 'gen_ai.request.model': 'chat', 'gen_ai.token.type': type, 'model_gateway.usage.source': source },
      count,
    ]
    assert.deepEqual(
      points('model_gateway.tokens')?.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
      [
        tokens('cache_write', 'measured', 10),
        tokens('cached_input', 'measured', 20),
        tokens('input', 'estimated', 50),
        tokens('input', 'measured', 50),
        tokens('output', 'estimated', 7),
        tokens('output', 'measured', 7),
      ],
    )
    assert.deepEqual(points('gen_ai.client.token.usage'), [
      [
        { ...CHAT, 'gen_ai.token.type': 'input' },
        { count: 2, sum: 100, bounds: TOKENS },
      ],
      [
        { ...CHAT, 'gen_ai.token.type': 'output' },
        { count: 2, sum: 14, bounds: TOKENS },
      ],
    ])
    assert.equal(told.get('gen_ai.client.token.usage')?.unit, '{token}')
    assert.equal(told.get('model_gateway.tokens')?.unit, '{token}')
  })

  it('are attempts behind the first, how each ended, and lines that were left out', async (t) => {
    const late = attempt({
      outcome: 'upstream_timeout',
      timeoutPhase: 'idle',
      upstreamStatus: null,
      durationMs: 500,
    })
    const routing = {
      attempts: [late, attempt({ line: 'line-1', outcome: 'upstream_error' }), attempt({ line: 'line-2' })],
      eliminated: [
        { line: 'line-3', reason: 'disabled', detail: '' },
        { line: 'line-3', reason: 'disabled', detail: '' },
      ],
      retryBudgetSpent: true,
    }
    const { told, points } = await toldOf(t, endedCall({ routing }))
    assert.deepEqual(points('model_gateway.retries'), [[{ 'gen_ai.request.model': 'chat' }, 2]])
    assert.deepEqual(points('model_gateway.retries.withheld'), [[{ 'gen_ai.request.model': 'chat' }, 1]])
    assert.deepEqual(points('model_gateway.eliminations'), [
      [{ 'model_gateway.line': 'line-3', 'model_gateway.reason': 'disabled' }, 2],
    ])
    assert.deepEqual(points('model_gateway.attempts'), [
      [
        {
          'model_gateway.line': 'line-0',
          'model_gateway.outcome': 'upstream_timeout',
          'model_gateway.timeout_phase': 'idle',
        },
        1,
      ],
      [{ 'model_gateway.line': 'line-1', 'model_gateway.outcome': 'upstream_error' }, 1],
      [{ 'model_gateway.line': 'line-2', 'model_gateway.outcome': 'completed' }, 1],
    ])
    assert.deepEqual(
      points('gen_ai.client.operation.duration')?.map(
        ([attributes]) => (attributes as Record<string, unknown>)['error.type'],
      ),
      ['upstream_timeout', 'upstream_error', undefined],
    )
    assert.equal(told.get('model_gateway.retries')?.unit, '{attempt}')
    assert.equal(told.get('model_gateway.retries.withheld')?.unit, '{call}')
    assert.equal(told.get('model_gateway.eliminations')?.unit, '{line}')
  })
})
