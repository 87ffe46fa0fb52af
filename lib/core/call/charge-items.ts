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
    const quantity = isOfTokens(item.unit) ? item.quantity : item.quantity * MILLION
    millionths += BigInt(Math.round(quantity)) * item.price
  }
  return { amount: roundHalfUp(millionths), items }
}

function isOfTokens(unit: ChargeItem['unit']): boolean {
  return unit === 'input' || unit === 'cached_input' || unit === 'cache_write' || unit === 'output'
}

/** Millionths of a nano-unit to whole ones. */
function roundHalfUp(millionths: bigint): bigint {
  return (millionths + 500_000n) / 1_000_000n
}
