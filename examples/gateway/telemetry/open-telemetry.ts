import { randomUUID } from 'node:crypto'
import { readdirSync } from 'node:fs'
import {
  monitorEventLoopDelay,
  type PerformanceEntry,
  PerformanceObserver,
  performance,
} from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import { DiagLogLevel, diag, type Meter, metrics, type Observable } from '@opentelemetry/api'
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus'
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources'
import {
  AggregationType,
  createAllowListAttributesProcessor,
  InstrumentType,
  MeterProvider,
  type ViewOptions,
} from '@opentelemetry/sdk-metrics'
import type { Logger } from 'express-model-gateway'
import type { ObservabilitySettings } from '../config/environment.ts'

/** The registered OpenTelemetry SDK. */
export interface Observability {
  /** Returns the metrics of this process in Prometheus's text format. */
  readonly metricsText: () => Promise<string>
  /** Sends what has not been sent yet. */
  close(): Promise<void>
}

const CLOSE_TIMEOUT_MS = 3000
/** All labels are bounded already. In the SDK's own bound, further series overwrite each other. */
const NO_LIMIT = { aggregationCardinalityLimit: Number.POSITIVE_INFINITY }
const COUNTED = [
  InstrumentType.COUNTER,
  InstrumentType.GAUGE,
  InstrumentType.UP_DOWN_COUNTER,
  InstrumentType.OBSERVABLE_COUNTER,
  InstrumentType.OBSERVABLE_GAUGE,
  InstrumentType.OBSERVABLE_UP_DOWN_COUNTER,
]
const SECONDS = [0.04, 0.16, 0.64, 1.28, 2.56, 5.12, 10.24, 40.96]
const BY_MODEL = ['gen_ai.operation.name', 'gen_ai.request.model']

/** Each bucket of a histogram is a series for each combination of attributes. Counters and traces have what is left out. */
const VIEWS: ViewOptions[] = [
  ...COUNTED.map((instrumentType) => ({ instrumentType, ...NO_LIMIT })),
  histogramView('gen_ai.server.request.duration', BY_MODEL, SECONDS),
  histogramView('gen_ai.server.time_to_first_token', BY_MODEL, [0.04, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]),
  histogramView('gen_ai.client.operation.duration', ['model_gateway.line'], SECONDS),
  histogramView(
    'gen_ai.client.token.usage',
    ['gen_ai.token.type'],
    [16, 256, 1024, 4096, 16_384, 65_536, 262_144],
  ),
]

function histogramView(instrumentName: string, attributes: string[], boundaries: number[]): ViewOptions {
  return {
    ...{ instrumentName, ...NO_LIMIT },
    attributesProcessors: [createAllowListAttributesProcessor(attributes)],
    aggregation: { type: AggregationType.EXPLICIT_BUCKET_HISTOGRAM, options: { boundaries } },
  }
}

/** Registers the SDK for metrics and, with a collector, for traces. Call it once, before you create the gateway. */
export async function startObservability(
  settings: ObservabilitySettings,
  logger: Logger,
): Promise<Observability> {
  // The exporters are as much to load as all the rest of the SDK.
  const collector = settings.toCollector ? await import('./collector.ts') : undefined
  logSdkProblems(logger)
  // The instance id separates the series of several processes.
  const names = { 'service.name': 'express-model-gateway', 'service.instance.id': randomUUID() }
  const resource = defaultResource()
    .merge(resourceFromAttributes(names))
    .merge(detectResources({ detectors: [envDetector] }))
  const scrapes = new PrometheusExporter({ preventServerStart: true })
  const meters = new MeterProvider({ resource, readers: [scrapes], views: VIEWS })
  metrics.setGlobalMeterProvider(meters)
  const endProcess = observeProcess(metrics.getMeter('express-model-gateway-server'))
  const pushes = collector && new collector.MetricPushes(scrapes)
  const tracers = collector?.registerTraces(settings.traces, resource)
  return {
    metricsText: metricsText(scrapes),
    async close() {
      endProcess()
      const closing = Promise.allSettled([tracers?.shutdown(), pushes?.close()]).then(() => meters.shutdown())
      const late = new Promise((resolve) => setTimeout(resolve, CLOSE_TIMEOUT_MS, 'late').unref())
      if ((await Promise.race([closing, late])) === 'late')
        logger.warn({}, 'telemetry: the collector did not accept all remaining data before the shutdown')
    },
  }
}

function metricsText(scrapes: PrometheusExporter): () => Promise<string> {
  const serializer = new PrometheusSerializer('', false, undefined, false, true)
  return async function metricsText() {
    const { resourceMetrics, errors } = await scrapes.collect()
    for (const error of errors) diag.error('collecting metrics failed', error)
    return serializer.serialize(resourceMetrics)
  }
}

/** Logs warnings and errors of the SDK, such as an unreachable collector; by default it logs nothing. */
function logSdkProblems(logger: Logger): void {
  const logAt =
    (level: 'warn' | 'error') =>
    (message: string, ...details: unknown[]) =>
      logger[level]({ details: details.map(String) }, `telemetry: ${message}`)
  const ignore = (): void => {}
  const log = { error: logAt('error'), warn: logAt('warn'), info: ignore, debug: ignore, verbose: ignore }
  diag.setLogger(log, { logLevel: DiagLogLevel.WARN })
}

const NANOS = 1e9
/** `detail.kind` of an entry of the garbage collector. */
const GC_TYPES: Readonly<Record<number, string>> = { 1: 'minor', 4: 'major', 8: 'incremental', 16: 'weakcb' }
/** The bounds that the semantic conventions give, in seconds. */
const GC_SECONDS = [0.01, 0.1, 1, 10]

type CollectionEntry = PerformanceEntry & { readonly detail: { readonly kind: number } }

/** Reports what the process uses, with the names of the semantic conventions. Returns a function that ends it. */
function observeProcess(meter: Meter): () => void {
  const delays = monitorEventLoopDelay({ resolution: 10 })
  delays.enable()
  const collected = meter.createHistogram('v8js.gc.duration', {
    unit: 's',
    description: 'Garbage collections',
    advice: { explicitBucketBoundaries: GC_SECONDS },
  })
  const collections = new PerformanceObserver((list) => {
    for (const { duration, detail } of list.getEntries() as CollectionEntry[]) {
      const type = GC_TYPES[detail.kind] ?? 'other'
      collected.record(duration / 1000, { 'v8js.gc.type': type })
    }
  })
  collections.observe({ entryTypes: ['gc'] })
  observeReadings(meter, delays)
  return () => {
    delays.disable()
    collections.disconnect()
  }
}

function observeReadings(meter: Meter, delays: ReturnType<typeof monitorEventLoopDelay>): void {
  const gauge = (name: string, unit: string, description: string) =>
    meter.createObservableGauge(name, { unit, description })
  const level = (name: string, unit: string, description: string) =>
    meter.createObservableUpDownCounter(name, { unit, description })
  const cpu = meter.createObservableCounter('process.cpu.time', { unit: 's', description: 'CPU time' })
  const uptime = gauge('process.uptime', 's', 'Since the start')
  const memory = level('process.memory.usage', 'By', 'Physical memory in use')
  const files = level('process.open_file_descriptor.count', '{file_descriptor}', 'Open files and sockets')
  const heap = level('v8js.memory.heap.used', 'By', 'Heap memory in use')
  const heapLimit = level('v8js.memory.heap.limit', 'By', 'Heap memory at most')
  const handles = level(
    'nodejs.resources.active',
    '{resource}',
    'Open handles and requests that keep the event loop alive',
  )
  const busy = gauge(
    'nodejs.eventloop.utilization',
    '1',
    'Share of the time since the last collection in which the event loop was busy',
  )
  const [p50, p99, max] = ['p50', 'p99', 'max'].map((which) =>
    gauge(`nodejs.eventloop.delay.${which}`, 's', 'Delay of the event loop since the last collection'),
  ) as [Observable, Observable, Observable]
  let utilization = performance.eventLoopUtilization()
  meter.addBatchObservableCallback(
    (result) => {
      const { user, system } = process.cpuUsage()
      result.observe(cpu, user / 1e6, { 'cpu.mode': 'user' })
      result.observe(cpu, system / 1e6, { 'cpu.mode': 'system' })
      result.observe(uptime, process.uptime())
      result.observe(memory, process.memoryUsage.rss())
      const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics()
      result.observe(heap, used)
      result.observe(heapLimit, limit)
      result.observe(handles, process.getActiveResourcesInfo().length)
      const descriptors = openDescriptors()
      if (descriptors !== undefined) result.observe(files, descriptors)
      const now = performance.eventLoopUtilization()
      result.observe(busy, performance.eventLoopUtilization(now, utilization).utilization)
      utilization = now
      if (delays.count > 0) {
        result.observe(p50, delays.percentile(50) / NANOS)
        result.observe(p99, delays.percentile(99) / NANOS)
        result.observe(max, delays.max / NANOS)
      }
      delays.reset()
    },
    [cpu, uptime, memory, heap, heapLimit, handles, files, busy, p50, p99, max],
  )
}

/** Undefined where the system does not list them. */
function openDescriptors(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length
  } catch {
    return undefined
  }
}
