import type { HeapProfiler } from 'node:inspector'
import { setTimeout as wait } from 'node:timers/promises'
import { median } from '../statistics.ts'
import type { OneConnection } from './one-connection.ts'
import { ownPath, PARTS, type Part, partOf } from './parts.ts'
import type { ProbedProcess } from './probed-process.ts'

/** A young generation that takes all that a batch allocates, so that nothing of it is collected before it was counted. */
export const NO_COLLECTIONS: readonly string[] = [
  '--expose-gc',
  '--min-semi-space-size=256',
  '--max-semi-space-size=256',
]

/**
 * Until all of the path is optimised code, which allocates less. What runs once for many calls, such as the write of log
 * entries, is last.
 */
const WARM_UP_CALLS = 30_000
/** Many, because each batch begins with a collection, and what that cleared is allocated anew. */
const CALLS_A_BATCH = 2000
const BATCHES = 7
/** For what follows an answer, such as the write of its entry. */
const TRAILING_WORK_MS = 150

const SAMPLED_CALLS = 2000
/** Bytes from one sample to the next. */
const SAMPLING_INTERVAL = 512

/** How many bytes of its heap a process allocates for one warm call, less what it allocates in the same time without any. */
export async function bytesOfOneCall(process: ProbedProcess, caller: OneConnection): Promise<number> {
  await caller.calls(WARM_UP_CALLS)
  const measured: number[] = []
  while (measured.length < BATCHES) {
    const began = performance.now()
    const busy = await growthOver(process, () => caller.calls(CALLS_A_BATCH))
    const took = performance.now() - began
    const idle = await growthOver(process, () => wait(took))
    measured.push((busy - idle) / CALLS_A_BATCH)
  }
  return median(measured)
}

async function growthOver(process: ProbedProcess, run: () => Promise<unknown>): Promise<number> {
  await process.ask('collect')
  await run()
  await wait(TRAILING_WORK_MS)
  const { bytes, collections } = await process.ask('growth')
  if (collections > 0) throw new Error('the heap was collected while it was measured')
  return bytes
}

/** Where the bytes of a call are allocated: shares, that add up to 1. */
export interface Shares {
  readonly parts: Readonly<Record<Part, number>>
  /** In Node and in packages, with no function of ours waiting for it. */
  readonly outside: number
  /** By the function of ours, as `path:line name`. */
  readonly functions: ReadonlyMap<string, number>
}

/** Samples where a process allocates. What Node or a package allocates counts for the function of ours that called it. */
export async function sharesOfOneCall(process: ProbedProcess, caller: OneConnection): Promise<Shares> {
  await process.ask('startSampling', SAMPLING_INTERVAL)
  await caller.calls(SAMPLED_CALLS)
  await wait(TRAILING_WORK_MS)
  const { head } = await process.ask('stopSampling')
  const parts = Object.fromEntries(PARTS.map((part) => [part, 0])) as Record<Part, number>
  const functions = new Map<string, number>()
  let outside = 0
  let all = 0
  const visit = (node: HeapProfiler.SamplingHeapProfileNode, owner: Owner | undefined): void => {
    const nearest = ownerOf(node) ?? owner
    all += node.selfSize
    if (nearest === undefined) outside += node.selfSize
    else {
      parts[nearest.part] += node.selfSize
      functions.set(nearest.name, (functions.get(nearest.name) ?? 0) + node.selfSize)
    }
    for (const child of node.children) visit(child, nearest)
  }
  visit(head, undefined)
  for (const part of PARTS) parts[part] /= all
  for (const [name, bytes] of functions) functions.set(name, bytes / all)
  return { parts, outside: outside / all, functions }
}

interface Owner {
  readonly part: Part
  readonly name: string
}

function ownerOf({ callFrame }: HeapProfiler.SamplingHeapProfileNode): Owner | undefined {
  const path = ownPath(callFrame.url)
  if (path === undefined) return undefined
  return { part: partOf(path), name: `${path}:${callFrame.lineNumber + 1} ${callFrame.functionName}` }
}
