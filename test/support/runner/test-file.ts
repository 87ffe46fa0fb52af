import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { descendantsOf, runningProcesses, signalIfThere } from '../processes.ts'
import { type Counts, readClosingLines } from './closing-lines.ts'

const REPORTER = fileURLToPath(new URL('reporter.ts', import.meta.url))
/** What a file's own processes have for ending behind it. */
const ENDS_WITHIN_MS = 5000
const MAX_OUTPUT = 2_000_000
/** Most of a file's start is garbage that a larger young generation need not copy: a tenth less time. */
const LESS_COPYING = ['--min-semi-space-size=16', '--max-semi-space-size=16']

/** How a test file came out. */
export interface FileResult {
  readonly path: string
  readonly milliseconds: number
  /** What it said, without the counts. */
  readonly output: string
  readonly counts: Counts
  /** Undefined: all is well. */
  readonly failure: string | undefined
}

/** A test file that runs in a process of its own, which leads a group: whatever it starts can be found and ended. */
export interface RunningFile {
  readonly result: Promise<FileResult>
  /** Ends it, with all that it has started. */
  kill(): void
}

/** What a file is run with. */
export interface FileOptions {
  /** The file is killed when it has not ended by then. */
  readonly limitMs: number
  /** A test or hook without a clock of its own fails when it has not ended by then. */
  readonly testLimitMs: number
  /** Further arguments for Node. */
  readonly flags: readonly string[]
}

export function runTestFile(path: string, { limitMs, testLimitMs, flags }: FileOptions): RunningFile {
  const started = performance.now()
  const reporting = [`--test-reporter=${REPORTER}`, '--test-reporter-destination=stdout']
  const args = [
    ...process.execArgv,
    ...LESS_COPYING,
    ...reporting,
    `--test-timeout=${testLimitMs}`,
    ...flags,
    path,
  ]
  const child = spawn(process.execPath, args, { detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const pid = child.pid as number
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-MAX_OUTPUT)
    })
  let isLate = false
  const late = setTimeout(() => {
    isLate = true
    killAll(pid)
  }, limitMs)

  async function result(): Promise<FileResult> {
    const closed = once(child, 'close')
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
    clearTimeout(late)
    const left = isLate ? [] : await leftBehind(pid)
    if (left.length > 0) killAll(pid)
    // Who has left the group may still hold the pipes.
    await Promise.race([closed, sleep(1000, undefined, { ref: false })])
    child.stdout.destroy()
    child.stderr.destroy()
    const { counts, before } = readClosingLines(said) ?? { counts: undefined, before: said }
    const failure = failureOf({ code, signal, isLate, counts, left }, limitMs)
    return {
      path,
      milliseconds: performance.now() - started,
      output: before,
      counts: countsOf(counts, failure),
      failure,
    }
  }
  return { result: result(), kill: () => killAll(pid) }
}

/** How a file ended, as its runner saw it. */
interface End {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly isLate: boolean
  /** Undefined where it did not come to its closing lines. */
  readonly counts: Counts | undefined
  /** Processes that it left behind. */
  readonly left: readonly string[]
}

function failureOf({ code, signal, isLate, counts, left }: End, limitMs: number): string | undefined {
  if (isLate) return `had not ended after ${limitMs / 1000} s, and was killed with all that it had started`
  if (!counts) return `ended with ${signal ?? `code ${code}`} before its tests did`
  if (counts.fail + counts.cancelled > 0) return 'failed'
  if (code !== 0) return `ended with ${signal ?? `code ${code}`}`
  return left.length > 0 ? `has left processes behind: ${left.join('; ')}` : undefined
}

/** A file that failed otherwise than by its tests is itself one that failed. */
function countsOf(counts: Counts | undefined, failure: string | undefined): Counts {
  const some = counts ?? { tests: 0, suites: 0, pass: 0, fail: 0, cancelled: 0, skipped: 0, todo: 0 }
  const isOwn = failure !== undefined && some.fail + some.cancelled === 0
  return isOwn ? { ...some, tests: some.tests + 1, fail: 1 } : some
}

/** The processes of a group that are still there when its leader has ended, a while later. */
async function leftBehind(group: number): Promise<string[]> {
  const deadline = performance.now() + ENDS_WITHIN_MS
  for (;;) {
    const left = runningProcesses().filter((one) => one.group === group)
    if (left.length === 0 || performance.now() > deadline) return left.map(({ command }) => command)
    await sleep(50)
  }
}

/** Ends a group, and who has left it for one of his own but still has his parent. */
function killAll(leader: number): void {
  // Nobody who is stopped can start another meanwhile.
  signalIfThere(-leader, 'SIGSTOP')
  const all = [...descendantsOf(leader), ...runningProcesses().filter(({ group }) => group === leader)]
  for (const { pid } of all) signalIfThere(pid, 'SIGKILL')
  signalIfThere(-leader, 'SIGKILL')
}
