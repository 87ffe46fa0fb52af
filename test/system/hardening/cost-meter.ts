import assert from 'node:assert/strict'
import type { GatewayProcess } from '../../support/gateway-process.ts'
import { loopFigures } from '../../support/loop-figures.ts'

/** A third above the worst of a quiet machine, which is 52. */
const MAX_NANOS_A_BYTE = 70
/** What a call may cost however small it is, garbage collection and timers included. */
const ALLOWED_MICROS = 15_000
/** What the calibration takes on the machine that the limit was set on. Slower ones may take longer. */
const CALIBRATED_MICROS = 12_000

/** Nanoseconds of CPU time that a byte cost, and of what. */
export type Cost = readonly [nanos: number, what: string]

/** Measures what a gateway spends on something, by the byte. */
export async function costOf(
  gateway: GatewayProcess,
  bytes: number,
  act: () => Promise<unknown>,
  what: string,
  allowed = ALLOWED_MICROS,
): Promise<Cost> {
  const { calibrationMicros } = await loopFigures(gateway)
  await act()
  const { cpuMicros } = await loopFigures(gateway)
  const slowness = Math.max(1, calibrationMicros / CALIBRATED_MICROS)
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
