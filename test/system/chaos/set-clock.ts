import { readFileSync } from 'node:fs'

/*
 * Loaded into a gateway in front of everything else: its wall clock is ahead by the milliseconds that CLOCK_FILE has, which a
 * test may change. Processes with one file have one clock. Timers and the monotonic clock stay as they are.
 */

const file = process.env.CLOCK_FILE as string
const RealDate = Date
let ahead = Number(readFileSync(file, 'utf8'))
setInterval(() => {
  // It may be half written.
  ahead = Number(readFileSync(file, 'utf8')) || ahead
}, 10).unref()
const wall = () => RealDate.now() + ahead

globalThis.Date = class extends RealDate {
  constructor(...given: unknown[]) {
    super(...((given.length > 0 ? given : [wall()]) as [number]))
  }
  static override now = wall
} as DateConstructor
