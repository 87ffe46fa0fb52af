import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MeterProvider as Meters } from '@opentelemetry/api'
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { MeterProvider, type ResourceMetrics } from '@opentelemetry/sdk-metrics'
import { AggregatedHistograms } from '../../examples/gateway/aggregated-histograms.ts'

const BOUNDS = [0.1, 1, 10]

/** What a scrape and a collector are told of what is recorded. */
async function toldOf(tallied: boolean, record: (meters: Meters) => void) {
  const resource = resourceFromAttributes({ 'service.name': 'test' })
  const histograms = new AggregatedHistograms(resource)
  const metricProducers = tallied ? [histograms] : []
  const reader = new PrometheusExporter({ preventServerStart: true, metricProducers })
  const meters = new MeterProvider({ resource, readers: [reader] })
  record(tallied ? histograms.wrap(meters) : meters)
  const { resourceMetrics } = await reader.collect()
  await meters.shutdown()
  const page = new PrometheusSerializer('', false, undefined, false, true).serialize(resourceMetrics)
  return { page: page.split('\n').toSorted(), pushed: pushedOf(resourceMetrics) }
}

/** What is sent, but for the times. */
function pushedOf({ scopeMetrics }: ResourceMetrics): string[] {
  const all = scopeMetrics.flatMap(({ scope, metrics }) =>
    metrics.map(({ dataPoints, ...metric }) => ({
      scope: scope.name,
      version: scope.version,
      name: metric.descriptor.name,
      unit: metric.descriptor.unit,
      description: metric.descriptor.description,
      valueType: metric.descriptor.valueType,
      type: metric.dataPointType,
      temporality: metric.aggregationTemporality,
      points: dataPoints.map(({ attributes, value }) => {
        if (typeof value === 'number') return [attributes, value]
        const { count, sum, min, max } = value
        return [attributes, count, sum, min, max, 'buckets' in value && value.buckets]
      }),
    })),
  )
  return all.map((metric) => JSON.stringify(metric)).toSorted()
}

async function assertToldAlike(record: (meters: Meters) => void): Promise<string> {
  const [own, sdk] = await Promise.all([toldOf(true, record), toldOf(false, record)])
  assert.deepEqual(own, sdk)
  return own.page.join('\n')
}

test('histograms are told as those of the SDK, to a scrape and to a collector', async () => {
  const page = await assertToldAlike((meters) => {
    const meter = meters.getMeter('test')
    const options = { unit: 's', description: 'Durations', advice: { explicitBucketBoundaries: BOUNDS } }
    const histogram = meter.createHistogram('durations', options)
    const shared = { model: 'chat', line: 'one' }
    for (const value of [0, 0.1, 0.100001, 1, 5, 10, 11, Number.NaN]) histogram.record(value, shared)
    histogram.record(3, { line: 'one', model: 'chat' })
    histogram.record(4, { line: 'two', model: 'chat' })
    histogram.record(2)
    meter.createHistogram('durations', options).record(0.5, shared)
    meter.createHistogram('plain').record(7.5, { a: 1 })
    meter.createHistogram('never recorded')
  })
  assert.match(page, /durations_count\{model="chat",line="one"\} 9/)
})

test('more attributes than there may be are told together', async () => {
  const page = await assertToldAlike((meters) => {
    const histogram = meters
      .getMeter('test')
      .createHistogram('many', { advice: { explicitBucketBoundaries: [] } })
    for (let i = 0; i < 2100; i++) histogram.record(1, { i })
  })
  assert.match(page, /many_count\{otel_metric_overflow="true"\} 101/)
})

test('all else is the own meter of the SDK, whose callbacks are heard before histograms are told', async () => {
  const page = await assertToldAlike((meters) => {
    const meter = meters.getMeter('test')
    assert.equal(meters.getMeter('test'), meter)
    const histogram = meter.createHistogram('late', { advice: { explicitBucketBoundaries: BOUNDS } })
    const gauge = meter.createObservableGauge('gauge')
    const read = (result: { observe(of: typeof gauge, value: number): void }) => {
      histogram.record(1)
      result.observe(gauge, 5)
    }
    meter.addBatchObservableCallback(read, [gauge])
    meter.createCounter('counter').add(2, { a: 'b' })
  })
  assert.match(page, /late_count 1/)
  assert.match(page, /gauge 5/)
  assert.match(page, /counter_total\{a="b"\} 2/)
})
