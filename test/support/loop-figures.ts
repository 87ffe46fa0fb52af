// Loaded into a gateway's process before its program (`--import`): reports what the process has cost.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { isMainThread } from 'node:worker_threads'
import type { Environment, GatewayProcess } from './gateway-process.ts'

/** The cost of a process since the last request for it. */
export interface LoopFigures {
  /** CPU time of all its threads, in microseconds. */
  readonly cpuMicros: number
  /**
   * The longest time that the event loop did not give way, in milliseconds of the thread's CPU time: what other
   * processes of the machine do does not show in it.
   */
  readonly heldMs: number
  /** The CPU time of a loop of known work, done right behind, in microseconds: how fast the machine is. */
  readonly calibrationMicros: number
}

/** The figures without the calibration, which takes longer than most of what is measured. */
export type UncalibratedFigures = Omit<LoopFigures, 'calibrationMicros'>

/** The environment of a gateway's process that answers {@link loopFigures}. */
export const WITH_LOOP_FIGURES: Environment = {
  NODE_OPTIONS: `--import=${fileURLToPath(import.meta.url)}`,
  LOOP_FIGURES: '1',
}

const UNCALIBRATED = '/uncalibrated'
const ANNOUNCEMENT = /loop figures at (\d+)\n/

/** Asks what a gateway has cost since it was last asked. */
export async function loopFigures(gateway: GatewayProcess): Promise<LoopFigures> {
  return (await ask(gateway, '/')) as LoopFigures
}

/** Asks so without a calibration. */
export async function uncalibratedFigures(gateway: GatewayProcess): Promise<UncalibratedFigures> {
  return (await ask(gateway, UNCALIBRATED)) as UncalibratedFigures
}

async function ask({ stdout }: GatewayProcess, path: string): Promise<unknown> {
  const [, port] = ANNOUNCEMENT.exec(stdout) ?? []
  const response = await fetch(`http://127.0.0.1:${port}${path}`)
  return response.json()
}

const TICK_MS = 2

if (isMainThread && process.env.LOOP_FIGURES === '1') watchLoop()

function watchLoop(): void {
  let heldMicros = 0
  let lastTick = threadMicros()
  setInterval(() => {
    const now = threadMicros()
    heldMicros = Math.max(heldMicros, now - lastTick)
    lastTick = now
  }, TICK_MS).unref()
  let cpuBefore = process.cpuUsage()
  const server = createServer(({ url }, res) => {
    const { user, system } = process.cpuUsage(cpuBefore)
    const figures: UncalibratedFigures & Partial<LoopFigures> = {
      cpuMicros: user + system,
      heldMs: heldMicros / 1000,
      ...(url !== UNCALIBRATED && { calibrationMicros: calibrate() }),
    }
    res.end(JSON.stringify(figures))
    heldMicros = 0
    lastTick = threadMicros()
    cpuBefore = process.cpuUsage()
  })
  server.unref().listen(0, '127.0.0.1', () => {
    process.stdout.write(`loop figures at ${(server.address() as AddressInfo).port}\n`)
  })
}

function threadMicros(): number {
  const { user, system } = process.threadCpuUsage()
  return user + system
}

function calibrate(): number {
  const before = threadMicros()
  const bytes = Buffer.alloc(1024 * 1024, 'calibration ')
  let sum = 0
  for (let round = 0; round < 8; round++) for (const byte of bytes) sum = (Math.imul(sum, 31) + byte) | 0
  // The sum is used, so that the loop stays.
  return Math.max(threadMicros() - before, sum === 0 ? 2 : 1)
}
