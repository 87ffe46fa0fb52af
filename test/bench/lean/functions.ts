import { readFileSync } from 'node:fs'
import type { Profiler } from 'node:inspector'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { OneConnection } from './one-connection.ts'
import { ownPath } from './parts.ts'
import type { ProbedProcess } from './probed-process.ts'

/** A function of ours that a call runs through. */
export interface RunFunction {
  /** From the root of the project. */
  readonly path: string
  readonly line: number
  /** Empty where it has none. */
  readonly name: string
}

/** Without its optimised code the process has to look up properties of each kind once more. */
const WARM_UP_CALLS = 300
/** What runs for its own reasons, such as a timer of a second, is in some of the rounds only. */
const ROUNDS = 9
/** Rounds begin half a second apart: a timer of a second is in about half of them. */
const RUN_BY_A_CALL = 0.75 * ROUNDS
/** Entries of the call log are written 50 ms after the call. */
const TRAILING_WORK_MS = 250

/** The functions of ours that one call runs through, its trailing work included: those of nearly all of several single calls. */
export async function functionsOfOneCall(
  gateway: ProbedProcess,
  caller: OneConnection,
): Promise<RunFunction[]> {
  await gateway.ask('startCoverage')
  await caller.calls(WARM_UP_CALLS)
  const rounds = new Map<string, { readonly fn: RunFunction; seen: number }>()
  for (let round = 0; round < ROUNDS; round++) {
    await wait(TRAILING_WORK_MS)
    await gateway.ask('takeCoverage')
    await caller.calls(1)
    await wait(TRAILING_WORK_MS)
    for (const [key, fn] of runFunctions(await gateway.ask('takeCoverage'))) {
      const known = rounds.get(key)
      if (known) known.seen++
      else rounds.set(key, { fn, seen: 1 })
    }
  }
  return [...rounds.values()]
    .filter(({ seen }) => seen > RUN_BY_A_CALL)
    .map(({ fn }) => fn)
    .sort((a, b) => a.path.localeCompare(b.path) || a.line - b.line)
}

/** By script and range. */
function runFunctions(scripts: readonly Profiler.ScriptCoverage[]): Map<string, RunFunction> {
  const found = new Map<string, RunFunction>()
  for (const { url, functions } of scripts) {
    const path = ownPath(url)
    if (path === undefined) continue
    for (const { functionName: name, ranges } of functions) {
      const [range] = ranges
      if (!range || range.count === 0) continue
      const line = lineAt(url, range.startOffset)
      found.set(`${path} ${range.startOffset}-${range.endOffset}`, { path, line, name })
    }
  }
  return found
}

const sources = new Map<string, string>()

/** Node takes types away in place, so that every offset is that of the source. */
function lineAt(url: string, offset: number): number {
  let source = sources.get(url)
  if (source === undefined) {
    source = readFileSync(fileURLToPath(url), 'utf8')
    sources.set(url, source)
  }
  return source.slice(0, offset).split('\n').length
}
