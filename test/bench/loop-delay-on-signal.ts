/**
 * Preloaded into a target: each SIGUSR2 writes the longest hold of the event loop since the one before to `LOOP_DELAY`, in
 * milliseconds of the thread's CPU time. What other processes do meanwhile does not show in it.
 */
import { writeFileSync } from 'node:fs'

const CHECK_INTERVAL_MS = 1

let longest = 0
let last = threadMs()
setInterval(() => {
  const now = threadMs()
  longest = Math.max(longest, now - last)
  last = now
}, CHECK_INTERVAL_MS).unref()

process.on('SIGUSR2', () => {
  writeFileSync(`${process.env.LOOP_DELAY}`, String(longest))
  longest = 0
})

function threadMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
