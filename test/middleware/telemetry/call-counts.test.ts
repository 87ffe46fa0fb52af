import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { callMetricsOn, labelsOf } from '../../../lib/middleware/telemetry/call-metrics.ts'
import { collectingMeter } from './collected.ts'
import { endedCall, toldOf } from './ended-calls.ts'

describe('the figures of a call beside its use', () => {
  it('is its charge, the limit that refused it, and the outcome of its key', async (t) => {
    const { told, points, metrics, collect } = await toldOf(
      t,
      endedCall({ billing: { charged: 1_500_000_000n } }),
      endedCall({ billing: { charged: null } }),
      endedCall({ limit: { kind: 'rpm', level: 'key' }, idempotency: { claim: { state: 'completed' } } }),
      endedCall({
        guards: [{ guard: 'cards', on: 'input', decision: 'replaced', checks: 2, durationMs: 1 }],
      }),
      endedCall({ cache: { outcome: 'hit', from: 'req_1' } }),
      endedCall({ cache: { outcome: 'miss', from: null } }),
    )
    assert.deepEqual(
      points('model_gateway.cache'),
      ['hit', 'miss'].map((outcome) => [
        { 'gen_ai.request.model': 'chat', 'model_gateway.outcome': outcome },
        1,
      ]),
    )
    assert.deepEqual(points('model_gateway.guards'), [
      [
        {
          'model_gateway.guard': 'cards',
          'model_gateway.direction': 'input',
          'model_gateway.outcome': 'replaced',
        },
        1,
      ],
    ])
    assert.deepEqual(points('model_gateway.charges'), [[{ 'gen_ai.request.model': 'chat' }, 1.5]])
    assert.deepEqual(points('model_gateway.limit.refusals'), [
      [{ 'model_gateway.limit.kind': 'rpm', 'model_gateway.limit.level': 'key' }, 1],
    ])
    assert.deepEqual(points('model_gateway.idempotency'), [[{ 'model_gateway.outcome': 'ran' }, 1]])
    assert.equal(told.get('model_gateway.charges')?.unit, 'USD')
    assert.equal(told.get('model_gateway.limit.refusals')?.unit, '{call}')
    assert.equal(told.get('model_gateway.idempotency')?.unit, '{call}')
    metrics.charge('film', 250_000_000n)
    assert.deepEqual(
      (await collect()).get('model_gateway.charges')?.points.map(([, value]) => value),
      [1.5, 0.25],
    )
  })

  it('is no duration where no model was asked, and an error by its code, else as another', async (t) => {
    const { points } = await toldOf(
      t,
      endedCall({
        request: null,
        routing: null,
        model: null,
        outcome: { status: 401, errorCode: 'invalid_credential', finish: 'refused' },
      }),
      endedCall({
        request: null,
        routing: null,
        model: 'unknown',
        outcome: { status: 404, errorCode: null, finish: 'refused' },
      }),
      endedCall({
        request: null,
        model: null,
        outcome: { status: 399, errorCode: null, finish: 'completed' },
      }),
      endedCall({
        request: null,
        routing: null,
        model: null,
        outcome: { status: 400, errorCode: null, finish: 'refused' },
      }),
      endedCall({ request: null, routing: null, model: null, outcome: null }),
    )
    assert.deepEqual(
      points('model_gateway.calls')?.map(([attributes]) => attributes),
      [
        {
          'http.response.status_code': 401,
          'error.type': 'invalid_credential',
          'model_gateway.outcome': 'refused',
        },
        { 'http.response.status_code': 400, 'error.type': 'other', 'model_gateway.outcome': 'refused' },
        {},
        {
          'gen_ai.request.model': 'other',
          'http.response.status_code': 404,
          'error.type': 'other',
          'model_gateway.outcome': 'refused',
        },
        {
          'gen_ai.operation.name': 'other',
          'http.response.status_code': 399,
          'model_gateway.outcome': 'completed',
        },
      ],
    )
    assert.equal(points('gen_ai.server.request.duration')?.length, 1, 'of what was asked of a line')
  })
})

describe('calls', () => {
  it('are open from their begin to their end, and counted once, however many there are', async (t) => {
    const { meter, collect } = collectingMeter(t)
    const metrics = callMetricsOn(meter)
    assert.equal(callMetricsOn(meter), metrics, 'one set for each meter')
    const counted = async () => {
      const told = await collect()
      const figureOf = (name: string) => told.get(name)?.points[0]?.[1]
      return [figureOf('model_gateway.calls') ?? 0, figureOf('model_gateway.calls.open')]
    }
    const call = endedCall({ usage: null })
    for (let i = 0; i < 130; i++) metrics.begin()
    assert.deepEqual(await counted(), [0, 130])
    for (let i = 0; i < 63; i++) metrics.end(call, labelsOf(call, undefined), 1)
    assert.deepEqual(await counted(), [63, 67])
    for (let i = 0; i < 65; i++) metrics.end(call, labelsOf(call, undefined), 1)
    assert.deepEqual(await counted(), [128, 2])
    assert.deepEqual(await counted(), [128, 2])
  })

  it('have the names that the conventions have for their operations, else their own', () => {
    const operationOf = (name: string) =>
      labelsOf(endedCall({ request: { operation: { name }, model: { id: 'chat' } } }), undefined).operation
    assert.deepEqual(
      ['chat.completions', 'messages', 'responses', 'completions', 'embeddings', 'rerank'].map(operationOf),
      ['chat', 'chat', 'chat', 'text_completion', 'embeddings', 'rerank'],
    )
  })
})
