/**
 * Preloaded into a profiled target. The start is profiled until a first SIGUSR2, the time from the second to the third once
 * more. The profiles are written to `PROFILE`.
 */
import { writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'

/** Microseconds between samples. A start takes seconds, a call a fraction of a millisecond. */
const START_MICROS = 1000
const CALLS_MICROS = 200

const session = new Session()
session.connect()
await session.post('Profiler.enable')
await startEvery(START_MICROS)
let parts: string[] = ['start', 'calls']
let isRunning = true

process.on('SIGUSR2', () => void (isRunning ? stop() : start()))

async function start() {
  isRunning = true
  await startEvery(CALLS_MICROS)
}

async function startEvery(interval: number) {
  await session.post('Profiler.setSamplingInterval', { interval })
  await session.post('Profiler.start')
}

async function stop() {
  isRunning = false
  const { profile } = await session.post('Profiler.stop')
  const [part, ...others] = parts
  parts = others
  writeFileSync(`${process.env.PROFILE}.${part}.cpuprofile`, JSON.stringify(profile))
}
