/** Preloaded into a target: each SIGUSR2 writes the longest hold of the event loop since the one before to `LOOP_DELAY`. */
import { writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'

const delays = monitorEventLoopDelay({ resolution: 1 })
delays.enable()

process.on('SIGUSR2', () => {
  writeFileSync(`${process.env.LOOP_DELAY}`, String(delays.max / 1e6))
  delays.reset()
})
