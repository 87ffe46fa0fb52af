/** Milliseconds of this thread's CPU time that `run` takes: other work on the machine does not prolong it as it does the clock's. */
export function cpuMsOf(run: () => void): number {
  const before = process.threadCpuUsage()
  run()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}
