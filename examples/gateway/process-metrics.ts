import { readdirSync } from 'node:fs'
import {
  monitorEventLoopDelay,
  type PerformanceEntry,
  PerformanceObserver,
  performance,
} from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { Meter, Observable } from '@opentelemetry/api'

const NANOS = 1e9
/** `detail.kind` of an entry of the garbage collector. */
const GC_TYPES: Readonly<Record<number, string>> = { 1: 'minor', 4: 'major', 8: 'incremental', 16: 'weakcb' }
/** The bounds that the semantic conventions give, in seconds. */
const GC_SECONDS = [0.01, 0.1, 1, 10]

type CollectionEntry = PerformanceEntry & { readonly detail: { readonly kind: number } }

/** Reports what the process uses, with the names of the semantic conventions. Returns a function that ends it. */
export function observeProcess(meter: Meter): () => void {
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
