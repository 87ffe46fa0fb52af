import assert from 'node:assert/strict'
import { test } from 'node:test'
import { metrics, trace } from '@opentelemetry/api'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import type { Call } from '../../../lib/core/call/index.ts'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import {
  StoreWatch,
  type TelemetryOptions,
  telemetry,
  VideoCharges,
} from '../../../lib/middleware/telemetry/index.ts'
import { eventually, serveApp } from '../../support/app-server.ts'

/** An app whose calls are observed, and how many of them registered something for their end. */
async function serve(options?: TelemetryOptions) {
  const registered: string[] = []
  const onBegin = (call: Call): void => {
    const { onEnd } = call
    call.onEnd = (name, run) => {
      registered.push(name)
      onEnd.call(call, name, run)
    }
  }
  const server = await serveApp((app) => {
    app.use(beginCall({ onBegin }), telemetry(options))
    app.get('/', (_req, res) => void res.json({ active: trace.getActiveSpan() ?? null }))
    app.use(errorEnvelope())
  })
  return { server, registered }
}

test('without an SDK nothing is registered on the call, and no span is active', async (t) => {
  const { server, registered } = await serve()
  t.after(() => server.close())
  const response = await fetch(server.url, {
    headers: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
  })
  assert.deepEqual([response.status, await response.json()], [200, { active: null }])
  assert.deepEqual(registered, [])
})

test('an SDK that is registered while the app runs receives the calls from then on, and the states', async (t) => {
  const store = new StoreWatch()
  store.onChange(true)
  const states = { stores: { own: store }, callLog: { queued: 2, queuedBytes: 20, dropped: 5 } }
  const { server } = await serve({ states })
  t.after(() => server.close())
  await (await fetch(server.url)).text()
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  const meters = new MeterProvider({ readers: [reader] })
  metrics.setGlobalMeterProvider(meters)
  t.after(() => {
    metrics.disable()
    return meters.shutdown()
  })
  await (await fetch(server.url)).text()
  await (await fetch(server.url)).text()
  const told = async (name: string) => {
    exporter.reset()
    await meters.forceFlush()
    const all = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics)
    const found = all.flatMap((scope) => scope.metrics).find(({ descriptor }) => descriptor.name === name)
    return found?.dataPoints.map(({ value }) => value)
  }
  while ((await told('model_gateway.calls.open'))?.[0] !== 0);
  assert.deepEqual(await told('model_gateway.calls'), [2])
  assert.deepEqual(await told('model_gateway.store.outages'), [1])
  assert.deepEqual(await told('model_gateway.store.away'), [1])
  assert.deepEqual(await told('model_gateway.call_log.dropped'), [5])
})

test('one SDK, two chains: their calls are counted together', async (t) => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  const meters = new MeterProvider({ readers: [reader] })
  metrics.setGlobalMeterProvider(meters)
  t.after(() => {
    metrics.disable()
    return meters.shutdown()
  })
  const chains = await Promise.all([serve(), serve()])
  for (const { server, registered } of chains) {
    t.after(() => server.close())
    await (await fetch(server.url)).text()
    assert.deepEqual(registered, ['telemetry'])
  }
  let calls: unknown
  await eventually(() => {
    void meters.forceFlush()
    const last =
      exporter
        .getMetrics()
        .at(-1)
        ?.scopeMetrics.flatMap((scope) => scope.metrics) ?? []
    calls = last.find(({ descriptor }) => descriptor.name === 'model_gateway.calls')?.dataPoints[0]?.value
    return calls === 2
  })
})

test('options that are unusable are refused at construction, and the least that is usable is not', () => {
  const unusable = (options: unknown) => () => telemetry(options as TelemetryOptions)
  for (const [options, message] of [
    [{ catalog: {} }, /^telemetry: "catalog" must be a catalogue/],
    [{ states: { stores: { own: {} } } }, /^telemetry: "states\.stores\.own" must report outages/],
    [{ states: { stores: { own: null } } }, /"states\.stores\.own" must report outages/],
    [{ states: { line: {} } }, /^telemetry: "states": there is no option "line"; did you mean "lines"/],
    [{ states: { lines: {} } }, /^telemetry: "states": "lines" must be a LineRegistry/],
    [{ states: 7 }, /^telemetry: "states" must be an object of states/],
    [{ labels: 'account' }, /^telemetry: "labels" must be a list of "account"/],
    [{ labels: ['model'] }, /^telemetry: "labels" must be a list of "account"/],
    [{ labels: ['tag:a.b', 'tag:a-b'] }, /"labels" must be .* whose names differ/],
    [{ maxLabelValues: 0 }, /^telemetry: "maxLabelValues" must be a whole number from 1/],
    [{ label: ['account'] }, /^telemetry: there is no option "label"; did you mean "labels"\?/],
  ] as const)
    assert.throws(unusable(options), { name: 'TypeError', message })
  assert.doesNotThrow(unusable({ labels: ['account', 'tag:a'], maxLabelValues: 1, states: {} }))
})

test('a video that is charged later is among the charges of its model, and of whom it was for', async (t) => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  const meters = new MeterProvider({ readers: [reader] })
  metrics.setGlobalMeterProvider(meters)
  t.after(() => {
    metrics.disable()
    return meters.shutdown()
  })
  const { catalog } = loadConfig({
    models: [{ id: 'film', kind: 'video' }],
    lines: [{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://127.0.0.1:1/v1', models: {} }],
  })
  const videos = new VideoCharges()
  telemetry({ catalog, states: { videos }, labels: ['account'] })
  const task = (model: string) => ({
    model,
    upstreamId: 'up',
    charge: { amount: 500_000_000n },
    account: 'acme',
  })
  const store = videos.watching({
    created: async (model: string) => task(model),
    observe: async () => undefined,
    resolve: async () => undefined,
  })
  await store.created('film')
  await store.created('a film of nobody')
  await meters.forceFlush()
  const told = exporter
    .getMetrics()
    .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics))
    .filter(({ descriptor }) => descriptor.unit === 'USD')
    .map(({ descriptor: { name }, dataPoints }) => [
      name,
      dataPoints.map(({ attributes, value }) => [{ ...attributes }, value]),
    ])
  assert.deepEqual(told, [
    [
      'model_gateway.charges',
      [
        [{ 'gen_ai.request.model': 'film' }, 0.5],
        [{ 'gen_ai.request.model': 'other' }, 0.5],
      ],
    ],
    ['model_gateway.attributed.charges', [[{ 'model_gateway.account': 'acme' }, 1]]],
  ])
})
