import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { describe, it } from 'node:test'
import { SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'
import { labelsOf } from '../../../lib/middleware/telemetry/call-metrics.ts'
import { CallTrace } from '../../../lib/middleware/telemetry/call-trace.ts'
import { attempt, endedCall, STARTED } from './ended-calls.ts'

const exporter = new InMemorySpanExporter()
const tracer = new TracerProvider({
  spanProcessors: [new SimpleSpanProcessor({ exporter })],
}).getTracer('test')

/** The spans of an ended call: its own, and those below it. */
function traced(members: object = {}) {
  exporter.reset()
  const call = endedCall({ id: 'req_1', method: 'POST', shortPath: '/v1/x', settling: null, ...members })
  new CallTrace(tracer, call, { headers: {} } as IncomingMessage).end(call, labelsOf(call, undefined))
  const spans = exporter.getFinishedSpans()
  const own = spans.find(({ kind }) => kind === SpanKind.SERVER) ?? assert.fail('no span of the call')
  for (const span of spans)
    if (span !== own) assert.equal(span.parentSpanContext?.spanId, own.spanContext().spanId)
  return { own, below: spans.filter((span) => span !== own) }
}

const msOf = ([seconds, nanos]: readonly [number, number]) => seconds * 1000 + nanos / 1e6

/** Without the attributes that have no value. */
const told = (attributes: object) => JSON.parse(JSON.stringify(attributes))

const UNROUTED = { request: null, routing: null, model: null }

describe('the span of a call', () => {
  it('is named by its method alone where no endpoint was reached, and by no method that is made up', () => {
    const nameAndMethod = (method: string) => {
      const { name, attributes } = traced({ ...UNROUTED, method }).own
      return [name, attributes['http.request.method']]
    }
    for (const method of 'CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT QUERY TRACE'.split(' '))
      assert.deepEqual(nameAndMethod(method), [method, method])
    for (const method of ['PROPFIND', 'get', 'X-1', ''])
      assert.deepEqual(nameAndMethod(method), ['HTTP', '_OTHER'])
  })

  it('is named by the path of its operation, and has it as its route', () => {
    for (const operation of OPERATIONS) {
      const { name, attributes } = traced({ request: { operation, model: { id: 'chat' } } }).own
      assert.deepEqual([name, attributes['http.route']], [`POST ${operation.path}`, operation.path])
    }
  })

  it('is named by the name of an operation outside of the table, whose path may hold an id, and has no route', () => {
    const operation = { name: 'video.read', path: '/v1/videos/video_7' }
    const { name, attributes } = traced({ request: { operation, model: { id: 'film' } } }).own
    assert.equal(name, 'POST video.read')
    assert.doesNotMatch(JSON.stringify(attributes), /video_7|http\.route/)
  })

  it('has what the call was, what it used and what limited it', () => {
    const operation = OPERATIONS.find(({ name }) => name === 'chat.completions')
    const usage = { inputTokens: 50, outputTokens: 7 }
    const limit = { kind: 'rpm', level: 'key' }
    const outcome = { status: 429, errorCode: 'rate_limited', finish: 'refused' }
    const { own } = traced({ request: { operation, model: { id: 'chat' } }, usage, limit, outcome })
    assert.deepEqual(told(own.attributes), {
      'http.request.method': 'POST',
      'url.path': '/v1/x',
      'model_gateway.request_id': 'req_1',
      'http.route': '/v1/chat/completions',
      'http.response.status_code': 429,
      'model_gateway.outcome': 'refused',
      'error.type': 'rate_limited',
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'chat',
      'gen_ai.provider.name': 'acme-cloud',
      'gen_ai.usage.input_tokens': 50,
      'gen_ai.usage.output_tokens': 7,
      'model_gateway.limit.kind': 'rpm',
      'model_gateway.limit.level': 'key',
    })
    assert.equal(msOf(own.startTime), STARTED)
  })

  it('is an error from 500 on, or where the answer broke off, and else none', () => {
    const isError = (outcome: object | null) => traced({ outcome }).own.status.code === SpanStatusCode.ERROR
    for (const [status, finish, expected] of [
      [200, 'completed', false],
      [200, 'interrupted', true],
      [499, 'refused', false],
      [500, 'failed', true],
      [504, 'failed', true],
    ] as const)
      assert.equal(isError({ status, finish, errorCode: null }), expected, `${status} ${finish}`)
    assert.equal(isError(null), false)
  })
})

describe('the spans below it', () => {
  it('are its attempts, each at its time, with what the line was asked and answered', () => {
    const late = attempt({
      line: 'line-1',
      outcome: 'upstream_timeout',
      timeoutPhase: 'idle',
      upstreamStatus: null,
      upstreamModel: null,
    })
    const { below } = traced({ routing: { attempts: [attempt(), late], eliminated: [] } })
    assert.deepEqual(
      below.map(({ name, kind, startTime, endTime, attributes }) => [
        name,
        kind,
        msOf(startTime),
        msOf(endTime),
        told(attributes),
      ]),
      [
        [
          'chat up',
          SpanKind.CLIENT,
          STARTED + 100,
          STARTED + 2100,
          {
            'gen_ai.operation.name': 'chat',
            'gen_ai.provider.name': 'acme-cloud',
            'gen_ai.request.model': 'up',
            'model_gateway.line': 'line-0',
            'http.response.status_code': 200,
          },
        ],
        [
          'chat chat',
          SpanKind.CLIENT,
          STARTED + 100,
          STARTED + 2100,
          {
            'gen_ai.operation.name': 'chat',
            'gen_ai.provider.name': 'acme-cloud',
            'model_gateway.line': 'line-1',
            'error.type': 'upstream_timeout',
            'model_gateway.timeout_phase': 'idle',
          },
        ],
      ],
    )
  })

  it('have a name also where a call without an operation or a model reached a line', () => {
    const routing = { attempts: [attempt({ upstreamModel: null })], eliminated: [] }
    assert.deepEqual(
      traced({ request: null, model: null, routing }).below.map(({ name }) => name),
      ['other'],
    )
  })

  it('are its settling, until it has ended, or until now', () => {
    const settlingOf = (endedAt: number | null) => {
      const [settle, ...others] = traced({ ...UNROUTED, settling: { startedAt: STARTED + 7, endedAt } }).below
      assert.ok(settle && others.length === 0)
      assert.deepEqual([settle.name, msOf(settle.startTime)], ['settle', STARTED + 7])
      return msOf(settle.endTime)
    }
    assert.equal(settlingOf(STARTED + 9), STARTED + 9)
    const before = Date.now()
    assert.ok(settlingOf(null) >= before)
  })
})
