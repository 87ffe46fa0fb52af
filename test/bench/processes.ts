/** Starting the processes of a run on their cores, and reading from /proc what they use. */

import type { ChildProcess } from 'node:child_process'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { createInterface } from 'node:readline'

/** The core of the target, and the core shared by the upstream and the load generator. */
export const TARGET_CORE = 0
export const LOAD_CORE = 1

/** False where there is no `taskset` or only one core: everything then runs wherever the system puts it. */
export const pinned = availableParallelism() > 1 && spawnSync('taskset', ['--version']).status === 0

export interface Running {
  name: string
  pid: number
  url: string
  /** The address of the upstream that it was given. */
  upstream?: string | undefined
  /** Returns all that the process wrote to stderr so far. */
  complaints(): string
  /** Asks it to end; resolves when it has. */
  stop(): Promise<void>
}

/** A command line that runs on the given core where cores can be chosen. */
export function onCore(core: number, command: string[]): [string, string[]] {
  const [program, ...rest] = pinned ? ['taskset', '-c', String(core), ...command] : command
  return [program as string, rest]
}

/**
 * Returns the command with which a target runs an engine, so that it does not inherit the target's core. Empty where
 * cores cannot be chosen.
 */
export function onBothCores(): string[] {
  // In a process on one core `availableParallelism` counts that core only.
  const canChoose = cpus().length > 1 && spawnSync('taskset', ['--version']).status === 0
  return canChoose ? ['taskset', '-c', `${TARGET_CORE},${LOAD_CORE}`] : []
}

const TICKS_PER_SECOND = 100
const START_TIMEOUT_MS = 60_000

/**
 * Runs a script that listens: it is given `PORT` (0: any) and the members of `env`, and prints `listening <port>` when
 * it is ready. Node flags of this process, such as `--conditions`, hold for the script too.
 */
export function startListening(
  name: string,
  script: string,
  core: number,
  env: Record<string, string> = {},
  nodeFlags: string[] = [],
): Promise<Running> {
  const [program, args] = onCore(core, [process.execPath, ...process.execArgv, ...nodeFlags, script])
  const child = spawn(program, args, {
    env: { ...process.env, NODE_ENV: 'production', ...env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let complaints = ''
  child.stderr.on('data', (text: Buffer) => {
    complaints = (complaints + text).slice(-4000)
  })
  return new Promise((resolve, reject) => {
    const fail = (why: string) => {
      child.kill()
      reject(new Error(`${name} ${why}\n${complaints}`))
    }
    const timer = setTimeout(fail, START_TIMEOUT_MS, 'did not print "listening <port>" in time')
    child.once('error', (error) => fail(error.message))
    child.once('exit', (code) => fail(`ended with code ${code} before it listened`))
    createInterface(child.stdout).on('line', (line) => {
      const port = /^listening (\d+)$/.exec(line)?.[1]
      if (port === undefined) return
      clearTimeout(timer)
      child.removeAllListeners('exit')
      resolve({
        name,
        pid: child.pid as number,
        url: `http://127.0.0.1:${port}`,
        upstream: env.UPSTREAM,
        complaints: () => complaints,
        stop: () => stop(child),
      })
    })
  })
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  // A target that started a server of its own ends that first.
  child.kill('SIGTERM')
  await exited
}

function readProc(path: string): string | null {
  try {
    return readFileSync(`/proc/${path}`, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** CPU seconds that a process has used, all its threads together; null where there is no /proc. */
export function cpuSecondsOf(pid: number): number | null {
  const stat = readProc(`${pid}/stat`)
  if (stat === null) return null
  const afterName = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(afterName[11]) + Number(afterName[12])) / TICKS_PER_SECOND
}

/** Seconds that a core has been busy, with whatever it was; null where there is no /proc. */
export function busySecondsOf(core: number): number | null {
  const line = readProc('stat')?.match(new RegExp(`^cpu${core} (.*)$`, 'm'))?.[1]
  if (line === undefined) return null
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = line.split(' ').map(Number)
  return (user + nice + system + irq + softirq) / TICKS_PER_SECOND
}

/** Resident memory of a process in KiB; null where there is no /proc. */
export function residentKiB(pid: number): number | null {
  const match = readProc(`${pid}/status`)?.match(/^VmRSS:\s+(\d+) kB$/m)
  return match?.[1] === undefined ? null : Number(match[1])
}

/** How many files a process may have open; Node raises its own soft limit to the hard one as it starts. */
export function openFilesLimit(pid: number): number {
  const limit = readProc(`${pid}/limits`)?.match(/^Max open files\s+(\S+)/m)?.[1]
  return limit === undefined || limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit)
}
