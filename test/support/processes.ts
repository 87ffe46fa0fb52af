import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'

/** A process of this machine. */
export interface Running {
  readonly pid: number
  readonly parent: number
  /** Its process group: the pid of the process that leads it. */
  readonly group: number
  /** Its command, as far as the system shows it. */
  readonly command: string
}

/** All processes of this machine that have not ended. */
export function runningProcesses(): Running[] {
  // A bare Debian has no ps.
  if (existsSync('/proc/self/stat'))
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap(readStat)
  const listed = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,pgid=,stat=,comm='], { encoding: 'utf8' })
  return listed
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state]) => !state?.startsWith('Z'))
    .map(([pid, parent, group, , ...command]) => ({
      pid: Number(pid),
      parent: Number(parent),
      group: Number(group),
      command: command.join(' '),
    }))
}

/** The processes that a process has started, those that these have started, and so on; not itself. */
export function descendantsOf(pid: number, all = runningProcesses()): Running[] {
  return all
    .filter(({ parent }) => parent === pid)
    .flatMap((child) => [child, ...descendantsOf(child.pid, all)])
}

/** Sends a signal, and does nothing where the process has ended meanwhile; `-pid` stands for a whole group. */
export function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Nothing for a process that has ended: also for one that nobody has asked for how. */
function readStat(pid: string): Running[] {
  try {
    // The name in parentheses may hold anything; state, parent and group follow it.
    const [state, parent, group] =
      readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
    if (state === 'Z') return []
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
    return [{ pid: Number(pid), parent: Number(parent), group: Number(group), command }]
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes(`${(error as NodeJS.ErrnoException).code}`)) return []
    throw error
  }
}
