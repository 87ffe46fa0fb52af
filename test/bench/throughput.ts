/** The throughput cases: interleaved rounds of the same load on every target. */
import { checkedAnswerBytes } from './answer-check.ts'
import type { LoadResult } from './load.ts'
import { generate } from './load.ts'
import type { Running } from './processes.ts'
import { busySecondsOf, cpuSecondsOf, LOAD_CORE, pinned, TARGET_CORE } from './processes.ts'
import type { Pace, Prompt } from './workload.ts'
import { headersTo, pathTo, requestTo, STREAM_CHUNKS, WRITTEN_PATH } from './workload.ts'

export interface ThroughputCase {
  name: string
  pace: Pace | null
  connections: number
  unit: 'requests' | 'chunks'
  /** Defaults to `short`. */
  prompt?: Prompt
}

const saturating: ThroughputCase[] = [1, 32].flatMap((connections) => [
  { name: `plain-${connections}`, pace: null, connections, unit: 'requests' as const },
  { name: `burst-${connections}`, pace: 'burst' as const, connections, unit: 'chunks' as const },
  { name: `coalesced-${connections}`, pace: 'coalesced' as const, connections, unit: 'chunks' as const },
])

/** In the paced case the rate is given, and what the targets differ in is the CPU time that they need for it. */
export const throughputCases: ThroughputCase[] = [
  ...saturating,
  { name: 'paced-64', pace: 'paced', connections: 64, unit: 'chunks' },
  { name: 'long-16', pace: null, connections: 16, unit: 'requests', prompt: 'long' },
]

export interface Measurement {
  perSecond: number
  p50Ms: number
  p99Ms: number
  /** Share of a core that the target used; null where there is no /proc. */
  targetCpu: number | null
  /** How busy the core of upstream and load generator was; null where it is not known. */
  loadCoreBusy: number | null
  /** Share of the target's core that went to other processes; null where it is not known. */
  othersOnTargetCore: number | null
  /** CPU time of the target per unit. */
  cpuMicrosPerUnit: number | null
}

/** The optimising compiler shares the one core with the target: before this it has not seen to all of a large program. */
const WARM_UP_SECONDS = 10

/** @returns for each target its measurements, one a round. A single wrong answer fails the run. */
export async function measureThroughput(
  { pace, connections, unit, name, prompt }: ThroughputCase,
  targets: Running[],
  upstream: Running,
  rounds: number,
  seconds: number,
): Promise<Measurement[][]> {
  const expected = new Map<Running, number>()
  for (const target of targets) {
    expected.set(target, await checkedAnswerBytes(target, pace, prompt))
    await once(target, WARM_UP_SECONDS)
  }
  const measured: Measurement[][] = targets.map(() => [])
  for (let round = 0; round < rounds; round++) {
    for (const [i, target] of targets.entries()) measured[i]?.push(await measure(target))
  }
  return measured

  async function once(target: Running, duration: number): Promise<LoadResult> {
    const result = await generate({
      url: target.url + pathTo(target.name),
      headers: headersTo(target),
      body: requestTo(target.name, pace, prompt),
      connections,
      seconds: duration,
      expectedBytes: expected.get(target) as number,
    })
    if (result.faults > 0 || result.completed === 0) {
      const counts = `${result.faults} faults among ${result.completed} answers`
      throw new Error(
        `${target.name}, ${name}: ${counts} (status, length, connection)\n${target.complaints()}`,
      )
    }
    return result
  }

  async function written(): Promise<number> {
    return Number(await (await fetch(upstream.url + WRITTEN_PATH)).text())
  }

  async function measure(target: Running): Promise<Measurement> {
    const writtenBefore = await written()
    const before = used(target)
    const result = await once(target, seconds)
    const after = used(target)
    const elapsed = after.at - before.at
    const cpu = difference(after.cpu, before.cpu)
    const load = difference(after.loadCore, before.loadCore)
    const others = difference(difference(after.targetCore, before.targetCore), cpu)
    // Streams that the end of the load cut off cost CPU time too, so that is spread over all that was written.
    const units = unit === 'chunks' ? (await written()) - writtenBefore : result.completed
    return {
      perSecond: (result.completed * (unit === 'chunks' ? STREAM_CHUNKS : 1)) / result.seconds,
      p50Ms: result.p50Ms,
      p99Ms: result.p99Ms,
      targetCpu: cpu === null ? null : cpu / elapsed,
      loadCoreBusy: load === null ? null : load / elapsed,
      othersOnTargetCore: others === null || target === upstream ? null : Math.max(0, others / elapsed),
      cpuMicrosPerUnit: cpu === null ? null : (cpu * 1e6) / units,
    }
  }
}

function used({ pid }: Running) {
  return {
    at: performance.now() / 1000,
    cpu: cpuSecondsOf(pid),
    targetCore: pinned ? busySecondsOf(TARGET_CORE) : null,
    loadCore: pinned ? busySecondsOf(LOAD_CORE) : null,
  }
}

function difference(after: number | null, before: number | null): number | null {
  return after === null || before === null ? null : after - before
}
