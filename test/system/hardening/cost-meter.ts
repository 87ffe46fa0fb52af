import assert from 'node:assert/strict'
import type { GatewayProcess } from '../../support/gateway-process.ts'
import { type LoopFigures, loopFigures, uncalibratedFigures } from '../../support/loop-figures.ts'

/** The worst of a quiet machine is 41. */
const MAX_NANOS_A_BYTE = 50
/** The cost that a call may have however small it is, garbage collection and timers included. */
const ALLOWED_MICROS = 15_000
/** The time of the calibration on the machine that the limit was set on. Slower ones may take longer. */
const CALIBRATED_MICROS = 12_000

/** How many times longer the machine takes for the same work than the one that limits were set on; at least 1. */
export const slownessIn = ({ calibrationMicros }: LoopFigures): number =>
  Math.max(1, calibrationMicros / CALIBRATED_MICROS)

/** Nanoseconds of CPU time that a byte cost, and of what. */
export type Cost = readonly [nanos: number, what: string]

/** Measures what a gateway spends on something, by the byte; once more where it is too much: other load takes time too. */
export async function costOf(...measured: Parameters<typeof costOnce>): Promise<Cost> {
  const first = await costOnce(...measured)
  if (first[0] < MAX_NANOS_A_BYTE) return first
  const second = await costOnce(...measured)
  return second[0] < first[0] ? second : first
}

async function costOnce(
  gateway: GatewayProcess,
  bytes: number,
  act: () => Promise<unknown>,
  what: string,
  allowed = ALLOWED_MICROS,
): Promise<Cost> {
  const slowness = slownessIn(await loopFigures(gateway))
  await act()
  const { cpuMicros } = await uncalibratedFigures(gateway)
  const nanos = ((cpuMicros - allowed * slowness) * 1000) / bytes / slowness
  return [nanos, what.slice(0, 160)]
}

/** Fails where one of them cost more than its bytes are worth. */
export function judge(costs: readonly Cost[]): void {
  const [worst] = costs.toSorted(([one], [other]) => other - one)
  assert.ok(worst)
  console.log(`the worst: ${worst[0].toFixed(1)} ns a byte: ${worst[1]}`)
  assert.ok(worst[0] < MAX_NANOS_A_BYTE, `${worst}`)
}
