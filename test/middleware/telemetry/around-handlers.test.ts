import assert from 'node:assert/strict'
import { test } from 'node:test'
import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import type { RequestHandler } from 'express'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { telemetry } from '../../../lib/middleware/telemetry/index.ts'
import { eventually, recordingLogger, serveApp } from '../../support/app-server.ts'

const exporter = new InMemorySpanExporter()
const tracers = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] })
const own = tracers.getTracer('own')

/** As an instrumentation of the HTTP server does. */
const inASpan: RequestHandler = (_req, res, next) => {
  const span = own.startSpan('around')
  res.once('close', () => span.end())
  context.with(trace.setSpan(context.active(), span), next)
}

const spanNamed = (name: string) => exporter.getFinishedSpans().find((span) => span.name === name)

test("a handler's own spans belong to the call, and the call to the span it began in", async (t) => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(tracers)
  t.after(() => {
    context.disable()
    trace.disable()
  })
  const server = await serveApp((app) => {
    app.use(inASpan, beginCall(), telemetry())
    app.get('/', async (_req, res) => {
      await new Promise(setImmediate)
      own.startSpan('inside').end()
      res.json({})
    })
  })
  t.after(() => server.close())
  await (await fetch(server.url)).text()
  await eventually(() => spanNamed('GET') !== undefined && spanNamed('around') !== undefined)
  const [around, call, inside] = ['around', 'GET', 'inside'].map(spanNamed)
  assert.ok(around && call && inside)
  assert.equal(call.parentSpanContext?.spanId, around.spanContext().spanId)
  assert.equal(inside.parentSpanContext?.spanId, call.spanContext().spanId)
  assert.equal(call.attributes['http.response.status_code'], 200)
})

test('without a context manager a call has one span all the same, which is never active', async (t) => {
  exporter.reset()
  trace.setGlobalTracerProvider(tracers)
  t.after(() => trace.disable())
  const server = await serveApp((app) => {
    app.use(beginCall(), telemetry())
    app.put('/', (_req, res) => void res.json({ active: trace.getActiveSpan() ?? null }))
  })
  t.after(() => server.close())
  const began = Date.now()
  const response = await fetch(server.url, { method: 'PUT' })
  assert.deepEqual(await response.json(), { active: null })
  await eventually(() => spanNamed('PUT') !== undefined)
  const [span, ...others] = exporter.getFinishedSpans()
  assert.ok(span && others.length === 0)
  assert.equal(span.attributes['http.response.status_code'], 200)
  assert.equal(span.attributes['model_gateway.request_id'], response.headers.get('x-request-id'))
  assert.ok(span.startTime[0] * 1000 + span.startTime[1] / 1e6 >= began)
})

test('a span that cannot be started costs a call its span, and nothing else', async (t) => {
  const failing = {
    getTracer: () => ({
      startSpan() {
        throw new Error('no room')
      },
      startActiveSpan() {
        throw new Error('no room')
      },
    }),
  }
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(failing)
  t.after(() => {
    context.disable()
    trace.disable()
  })
  const logger = recordingLogger()
  const server = await serveApp((app) => {
    app.use(beginCall({ logger }), telemetry())
    app.get('/', (_req, res) => void res.json({}))
  })
  t.after(() => server.close())
  const response = await fetch(server.url)
  assert.deepEqual([response.status, await response.json()], [200, {}])
  assert.deepEqual(
    logger.lines.map(({ level, message, fields }) => [level, message, fields.requestId]),
    [['error', 'telemetry: a call is not recorded', response.headers.get('x-request-id')]],
  )
})
