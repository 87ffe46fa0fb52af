import assert from 'node:assert/strict'
import type { GatewayProcess } from '../../support/gateway-process.ts'
import { type LoopFigures, loopFigures, uncalibratedFigures } from '../../support/loop-figures.ts'

/** The worst of a quiet machine is 41. */
const MAX_NANOS_A_BYTE = 50
/** The same where other work has the caches of the machine. */
const MAX_BESIDE_OTHERS = 200
/** How often the same is measured at most. The least counts. */
const MEASUREMENTS = 4
/** The cost that a call may have however small it is, garbage collection and timers included. */
const ALLOWED_MICROS = 15_000
/** The time of the calibration on the machine that the limit was set on. Slower ones may take longer. */
const CALIBRATED_MICROS = 12_000

/** How many times longer the machine takes for the same work than the one that limits were set on; at least 1. */
export const slownessIn = ({ calibrationMicros }: LoopFigures): number =>
  Math.max(1, calibrationMicros / CALIBRATED_MICROS)

/** How slow the machine was when a gateway was first measured: a calibration takes longer than most of what is measured. */
const slownesses = new WeakMap<GatewayProcess, number>()

async function calibrated(gateway: GatewayProcess): Promise<number> {
  // The first time, the loop is not compiled yet.
  const slowness = Math.min(slownessIn(await loopFigures(gateway)), slownessIn(await loopFigures(gateway)))
  slownesses.set(gateway, slowness)
  return slowness
}

/** Nanoseconds of CPU time that a byte cost, of what, and how many it may cost. */
export type Cost = readonly [nanos: number, what: string, most: number]

/** Measures what a gateway spends on something, by the byte; again where it is too much: other load takes time too. */
export async function costOf(
  gateway: GatewayProcess,
  bytes: number,
  act: () => Promise<unknown>,
  what: string,
  allowed = ALLOWED_MICROS,
): Promise<Cost> {
  const once = async (slowness: number): Promise<number> =>
    (((await microsOf(gateway, act)) / slowness - allowed) * 1000) / bytes
  let nanos = await once(slownesses.get(gateway) ?? (await calibrated(gateway)))
  for (let i = 1; i < MEASUREMENTS && nanos >= MAX_NANOS_A_BYTE; i++)
    nanos = Math.min(nanos, await once(await calibrated(gateway)))
  return [nanos, what.slice(0, 160), MAX_NANOS_A_BYTE]
}

async function microsOf(gateway: GatewayProcess, act: () => Promise<unknown>): Promise<number> {
  await uncalibratedFigures(gateway)
  await act()
  return (await uncalibratedFigures(gateway)).cpuMicros
}

/** How many times the bytes are measured too, and how many times dearer each of them may be then. */
const TIMES_AS_MANY = 4
const MAX_GROWTH = 1.8
const TRIES = 3

/**
 * Measures what a gateway spends on so many bytes of something. Beside other work, which has the caches of the machine, a
 * byte may cost more, provided that the cost grows no faster than the bytes.
 *
 * @param act has the gateway work on that many bytes.
 */
export async function streamCostOf(
  gateway: GatewayProcess,
  bytes: number,
  act: (bytes: number) => Promise<unknown>,
  what: string,
): Promise<Cost> {
  const cost = await costOf(gateway, bytes, () => act(bytes), what)
  const [nanos, shown] = cost
  if (nanos < MAX_NANOS_A_BYTE || nanos >= MAX_BESIDE_OTHERS) return cost
  let growth = Number.POSITIVE_INFINITY
  let few = Number.POSITIVE_INFINITY
  let many = Number.POSITIVE_INFINITY
  for (let i = 0; i < TRIES && growth >= MAX_GROWTH; i++) {
    few = Math.min(few, await microsOf(gateway, () => act(bytes)))
    many = Math.min(many, await microsOf(gateway, () => act(TIMES_AS_MANY * bytes)))
    growth = many / few / TIMES_AS_MANY
  }
  const most = growth < MAX_GROWTH ? MAX_BESIDE_OTHERS : MAX_NANOS_A_BYTE
  return [nanos, `${shown}, of ${TIMES_AS_MANY} times as many ${growth.toFixed(1)} times that`, most]
}

/** Fails where one of them cost more than its bytes are worth. */
export function judge(costs: readonly Cost[]): void {
  const [worst] = costs.toSorted(
    ([one, , oneMost], [other, , otherMost]) => other / otherMost - one / oneMost,
  )
  assert.ok(worst)
  const [nanos, what, most] = worst
  console.log(`the worst: ${nanos.toFixed(1)} ns a byte: ${what}`)
  assert.ok(nanos < most, `${nanos} ns a byte: ${what}`)
}
