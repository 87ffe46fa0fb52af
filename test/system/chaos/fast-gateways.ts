import type { Environment } from '../../support/gateway-process.ts'

/** How much faster than the test's the clocks of its gateways run. */
const SPEED = 3

const PRELOAD = new URL('fast-clock.ts', import.meta.url)

/** The environment of gateways whose waits of a minute take twenty seconds. */
export const FAST: Environment = {
  NODE_OPTIONS: `--import=${PRELOAD}`,
  CLOCK_SPEED: `${SPEED}`,
  CLOCK_ORIGIN: `${Date.now()}`,
}

/** Milliseconds of the test's clocks, by theirs. */
export const theirMs = (real: number): number => real * SPEED

/** And the other way round. */
export const realMs = (theirs: number): number => theirs / SPEED
