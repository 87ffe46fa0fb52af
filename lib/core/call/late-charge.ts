import { formatAmount } from '../catalog/index.ts'
import type { ChargeItem } from './billing-trace.ts'
import { type CallLogEntry, CURRENCY } from './call-entry.ts'

/** What a call came to that was charged long after it had been answered. */
export interface LateCharge {
  /** Nano-units. */
  readonly reserved: bigint
  readonly amount: bigint
  readonly items: readonly ChargeItem[]
  /** Of video. */
  readonly seconds: number
  /** Output tokens. */
  readonly tokens: number
  readonly source: 'measured' | 'estimated'
}

/** A call's log entry with its charge. */
export function withLateCharge(entry: CallLogEntry, charge: LateCharge): CallLogEntry {
  const { reserved, amount, items, seconds, tokens, source } = charge
  return {
    ...entry,
    usage: {
      input_tokens: 0,
      cached_input_tokens: 0,
      cache_write_tokens: 0,
      output_tokens: tokens,
      seconds,
      source,
    },
    billing: {
      currency: CURRENCY,
      reserved: formatAmount(reserved),
      charged: formatAmount(amount),
      required: null,
      available: null,
      items: items.map(({ unit, quantity, price }) => ({ unit, quantity, price: formatAmount(price) })),
    },
  }
}
