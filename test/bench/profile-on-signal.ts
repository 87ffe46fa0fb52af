/** Preloaded into a profiled target: a first SIGUSR2 starts the profiler, a second one writes the profile to `PROFILE`. */
import { writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'

const session = new Session()
session.connect()
let running = false

process.on('SIGUSR2', () => {
  void (running ? stop() : start())
  running = true
})

async function start() {
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: 200 })
  await session.post('Profiler.start')
}

async function stop() {
  const { profile } = await session.post('Profiler.stop')
  writeFileSync(`${process.env.PROFILE}`, JSON.stringify(profile))
}
