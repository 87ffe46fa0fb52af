/*
 * Loaded into a gateway in front of everything else: its wall clock, its monotonic clock and its timers of a second and
 * more run CLOCK_SPEED times as fast. Shorter timers stay as they are: they bound what others take, who are no faster.
 * Processes that share a database have one wall clock, as it runs from the same CLOCK_ORIGIN in all of them.
 */

const speed = Number(process.env.CLOCK_SPEED)
const origin = Number(process.env.CLOCK_ORIGIN)
const SHORT_MS = 1000

const RealDate = Date
const wall = () => Math.round(origin + (RealDate.now() - origin) * speed)

globalThis.Date = class extends RealDate {
  constructor(...given: unknown[]) {
    super(...((given.length > 0 ? given : [wall()]) as [number]))
  }
  static override now = wall
} as DateConstructor

const monotonic = performance.now.bind(performance)
performance.now = () => monotonic() * speed

for (const name of ['setTimeout', 'setInterval'] as const) {
  const real = globalThis[name] as (run: () => void, ms?: number, ...rest: unknown[]) => NodeJS.Timeout
  const faster = (run: () => void, ms = 0, ...rest: unknown[]) =>
    real(run, ms < SHORT_MS ? ms : ms / speed, ...rest)
  globalThis[name] = Object.assign(faster, real) as unknown as typeof setTimeout & typeof setInterval
}
