import assert from 'node:assert/strict'
import { test } from 'node:test'
import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import type { RequestHandler } from 'express'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { telemetry } from '../../../lib/middleware/telemetry/index.ts'
import { eventually, serveApp } from '../../support/app-server.ts'

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
