import type { ChargeItem } from './billing-trace.ts'

const MILLION = 1_000_000

/**
 * What some terms come to (DESIGN 8): exact, and rounded half up to the nano-unit once. Those that cost nothing are left
 * out of the items.
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

/** Their price is per million. */
const TOKEN_UNITS: ReadonlySet<ChargeItem['unit']> = new Set([
  'input',
  'cached_input',
  'cache_write',
  'output',
])
