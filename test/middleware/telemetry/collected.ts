import type { TestContext } from 'node:test'
import type { Attributes, Meter } from '@opentelemetry/api'
import {
  AggregationTemporality,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'

/** A metric as it is collected: a value for each set of attributes; of a histogram count, sum and the bounds of its buckets. */
export interface Collected {
  readonly unit: string
  readonly points: readonly (readonly [
    attributes: Attributes,
    value: number | { readonly count: number; readonly sum: number; readonly bounds: readonly number[] },
  ])[]
}

/** A meter of OpenTelemetry's SDK, and what it collects, by name. */
export function collectingMeter(t: TestContext): {
  meter: Meter
  collect(): Promise<Map<string, Collected>>
} {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  const meters = new MeterProvider({ readers: [reader] })
  t.after(() => meters.shutdown())
  return {
    meter: meters.getMeter('test'),
    async collect() {
      exporter.reset()
      await meters.forceFlush()
      const metrics = exporter
        .getMetrics()
        .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics))
      return new Map(
        metrics.map(({ descriptor: { name, unit }, dataPoints }) => [
          name,
          { unit, points: dataPoints.map(({ attributes, value }) => [attributes, figureOf(value)] as const) },
        ]),
      )
    },
  }
}

function figureOf(value: number | Partial<Histogram>) {
  if (typeof value === 'number') return value
  const { count = 0, sum = 0, buckets } = value
  return { count, sum, bounds: buckets?.boundaries ?? [] }
}
