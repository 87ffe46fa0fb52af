import type { ChargeItem } from './billing-trace.ts'

const MILLION = 1_000_000

/**
 * Adds up terms (DESIGN 8): exact, and rounded half up to a nano-unit once. Terms without a cost are left out of the
 * items.
 */
export function sumOfItems(terms: readonly ChargeItem[]): {
  readonly amount: bigint
  readonly items: readonly ChargeItem[]
} {
  let millionths = 0n
  const items: ChargeItem[] = []
  for (const item of terms) {
    if (item.price === 0n || !(item.quantity > 0)) continue
    items.push(item)
    const quantity = TOKEN_UNITS.has(item.unit) ? item.quantity : item.quantity * MILLION
    millionths += BigInt(Math.round(quantity)) * item.price
  }
  return { amount: (millionths + 500_000n) / 1_000_000n, items }
}

/** The units with a price per million. */
const TOKEN_UNITS: ReadonlySet<ChargeItem['unit']> = new Set([
  'input',
  'cached_input',
  'cache_write',
  'output',
])
