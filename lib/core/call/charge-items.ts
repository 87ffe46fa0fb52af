import type { ChargeItem } from './billing-trace.ts'

const MILLION = 1_000_000

/** Adds up the items of a charge: exact, and rounded half up to the nano-unit once. */
export function amountOf(items: readonly ChargeItem[]): bigint {
  let millionths = 0n
  for (const { unit, quantity, price } of items) {
    millionths += BigInt(Math.round(TOKEN_UNITS.has(unit) ? quantity : quantity * MILLION)) * price
  }
  return (millionths + 500_000n) / 1_000_000n
}

/** The units with a price per million. */
const TOKEN_UNITS: ReadonlySet<ChargeItem['unit']> = new Set([
  'input',
  'cached_input',
  'cache_write',
  'output',
])
