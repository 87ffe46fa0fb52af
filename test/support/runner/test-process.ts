import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { descendantsOf, runningProcesses, signalIfThere } from '../processes.ts'
import { type Begun, type FileResult, resultsOf } from './file-results.ts'

const REPORTER = fileURLToPath(new URL('reporter.ts', import.meta.url))
const FILES_IN_TURN = fileURLToPath(new URL('files-in-turn.ts', import.meta.url))
/** This, and no flag of this process: the runner's own tests run it in one that has a reporter already. */
const FROM_SOURCE = '--conditions=@express-model-gateway/source'
/** The time in which a file's own processes must end after it. */
const ENDS_WITHIN_MS = 5000
const MAX_OUTPUT = 2_000_000
/** Most of a file's start is garbage that a larger young generation need not copy: a tenth less time. */
const LESS_COPYING = ['--min-semi-space-size=16', '--max-semi-space-size=16']

/** A process of tests, which leads a group: whatever it starts can be found and ended. */
export interface TestProcess {
  readonly pid: number
  /** The results of its files. Where it ran several, those without a clear result are missing and must be run alone. */
  readonly results: Promise<FileResult[]>
  /** Ends it, with all that it has started. */
  kill(): void
}

/** The options that files are run with. */
export interface FileOptions {
  /** A file's process is killed when the file has not ended by then. */
  readonly limitMs: number
  /** A test or hook without a clock of its own fails when it has not ended by then. */
  readonly testLimitMs: number
  /** Further arguments for Node. */
  readonly flags: readonly string[]
}

/** Runs files one after the other in a process. */
export function startTestProcess(paths: readonly string[], options: FileOptions): TestProcess {
  const { limitMs, testLimitMs, flags } = options
  const reporting = [`--test-reporter=${REPORTER}`, '--test-reporter-destination=stdout']
  const ofNode = [FROM_SOURCE, ...LESS_COPYING, ...reporting, `--test-timeout=${testLimitMs}`]
  const child = spawn(process.execPath, [...ofNode, ...flags, FILES_IN_TURN, ...paths], {
    detached: true,
    env: { ...process.env, NODE_TEST_CONTEXT: undefined },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  const pid = child.pid as number
  const [, stdout, stderr, told] = child.stdio as unknown as [null, Readable, Readable, Readable]
  let output = ''
  for (const stream of [stdout, stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-MAX_OUTPUT)
    })
  /** Why it was killed with all that it had started. */
  let killed: string | undefined
  const kill = (why: string) => {
    killed = why
    killAll(pid)
  }
  const late = setTimeout(() => kill(`had not ended after ${limitMs / 1000} s`), limitMs)
  // All that one alone does is its own.
  const begun: Begun[] = paths.length === 1 ? [{ path: paths[0] as string, at: performance.now() }] : []
  createInterface(told).on('line', (line) => {
    late.refresh()
    const [what, ...words] = line.split(' ')
    const more = words.join(' ')
    if (what === 'open') kill(`did not end for what it had left open (${more})`)
    else if (begun.at(-1)?.path !== more) begun.push({ path: more, at: performance.now() })
  })

  async function results(): Promise<FileResult[]> {
    const closed = once(child, 'close')
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
    clearTimeout(late)
    const at = performance.now()
    const left = killed === undefined ? await leftBehind(pid) : []
    if (left.length > 0) killAll(pid)
    // A process that has left the group may still hold the pipes.
    await Promise.race([closed, sleep(1000, undefined, { ref: false })])
    for (const stream of [stdout, stderr, told]) stream.destroy()
    return resultsOf(paths, begun, { code, signal, killed, left, at, output })
  }
  return { pid, results: results(), kill: () => killAll(pid) }
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
