/** Bounding the CPU time of processes by Linux's control groups, so that several gateways fit on two cores beside their load. */
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Short, so that a process that has used up its share waits for at most 10 ms. */
const PERIOD_US = 10_000
const VERSION_1 = '/sys/fs/cgroup/cpu'
const VERSION_2 = '/sys/fs/cgroup'

/** A group of processes that together have a share of one core. */
export interface CpuShare {
  /** Moves a process there. What it starts afterwards is there too. */
  add(pid: number): void
  /** Once all its processes have ended. */
  remove(): void
}

let made = 0

/** Returns undefined where this user cannot make groups. */
export function cpuShare(cores: number): CpuShare | undefined {
  const quota = Math.round(cores * PERIOD_US)
  const isVersion2 = existsSync(join(VERSION_2, 'cgroup.controllers'))
  const group = join(isVersion2 ? VERSION_2 : VERSION_1, `gateway-bench-${process.pid}-${++made}`)
  try {
    mkdirSync(group)
    if (isVersion2) {
      writeFileSync(join(group, 'cpu.max'), `${quota} ${PERIOD_US}`)
    } else {
      writeFileSync(join(group, 'cpu.cfs_period_us'), `${PERIOD_US}`)
      writeFileSync(join(group, 'cpu.cfs_quota_us'), `${quota}`)
    }
  } catch {
    return undefined
  }
  return {
    add: (pid) => writeFileSync(join(group, 'cgroup.procs'), `${pid}`),
    remove: () => rmdirSync(group),
  }
}
