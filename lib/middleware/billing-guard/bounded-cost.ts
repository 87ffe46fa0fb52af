import type { Call } from '../../core/call/index.ts'
import type { Reservation } from '../../ledger/pool/reservation.ts'
import type { Cost } from './cost.ts'

/**
 * Bounds the cost of what upstreams report, so that it leaves the account below zero by at most one reservation. The usage
 * is marked then, and an item shows what is not charged.
 */
export function boundedCost(call: Call, cost: Cost, { most }: Pick<Reservation, 'most'>): Cost {
  const { usage, billing } = call
  if (billing?.own !== undefined || !usage || most === undefined || cost.amount <= most) return cost
  const { source: _, reported, ...counts } = usage
  call.usage = { ...usage, source: 'bounded', reported: reported ?? counts }
  const waived = { unit: 'bounded', quantity: 1, price: most - cost.amount } as const
  return { amount: most, items: [...cost.items, waived] }
}
