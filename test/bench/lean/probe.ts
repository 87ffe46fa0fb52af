/**
 * Preloaded into a measured process: does what the bench asks for over the channel to its parent, and is idle otherwise.
 * What it allocates itself is a few objects a batch.
 */
import { type HeapProfiler, type Profiler, Session } from 'node:inspector/promises'
import { PerformanceObserver } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'
import { getHeapStatistics } from 'node:v8'

/** What the heap grew by while it was not collected. */
export interface Growth {
  readonly bytes: number
  /** Collections meanwhile: with any, `bytes` says nothing. */
  readonly collections: number
}

/** What a measured process does when it is asked to. */
export interface Probe {
  /** Collects all garbage; {@link Probe.growth} counts from here. */
  collect(): Promise<void>
  growth(): Promise<Growth>
  /** From here on the engine counts the calls of each function, and optimises none. */
  startCoverage(): Promise<void>
  /** The functions called since it was last asked. */
  takeCoverage(): Promise<Profiler.ScriptCoverage[]>
  startSampling(interval: number): Promise<void>
  stopSampling(): Promise<HeapProfiler.SamplingHeapProfile>
}

/** A question of the bench; the answer bears the same number. */
export interface Ask {
  readonly id: number
  readonly name: keyof Probe
  readonly argument?: number
}

/** Entries about collections are delivered some turns of the event loop later. */
const ENTRIES_ARRIVE_MS = 50

const session = new Session()
session.connect()

let heapBefore = 0
let collections = 0
new PerformanceObserver((list) => {
  collections += list.getEntries().length
}).observe({ entryTypes: ['gc'] })

const usedHeap = (): number => getHeapStatistics().used_heap_size

const probe: Probe = {
  async collect() {
    globalThis.gc?.()
    globalThis.gc?.()
    await wait(ENTRIES_ARRIVE_MS)
    collections = 0
    heapBefore = usedHeap()
  },
  async growth() {
    const bytes = usedHeap() - heapBefore
    await wait(ENTRIES_ARRIVE_MS)
    return { bytes, collections }
  },
  async startCoverage() {
    await session.post('Profiler.enable')
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  },
  async takeCoverage() {
    const { result } = await session.post('Profiler.takePreciseCoverage')
    return result
  },
  async startSampling(samplingInterval) {
    await session.post('HeapProfiler.startSampling', {
      samplingInterval,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    })
  },
  async stopSampling() {
    const { profile } = await session.post('HeapProfiler.stopSampling')
    return profile
  },
}

process.on('message', async ({ id, name, argument = 0 }: Ask) => {
  process.send?.({ id, answer: await probe[name](argument) })
})
