import { formatAmount } from '../catalog/index.ts'
import { type ChargeItem, CURRENCY, itemOf } from './billing-trace.ts'
import type { CallLogEntry } from './call-log-entry.ts'

/** The charge of a call that is charged long after its answer. */
export interface LateCharge {
  /** In nano-units. */
  readonly reserved: bigint
  readonly amount: bigint
  readonly items: readonly ChargeItem[]
  /** Seconds of video. */
  readonly seconds: number
  /** Output tokens. */
  readonly tokens: number
  /** Whether the quantities are the line's or the requested ones. `bounded`: they come to more than is charged. */
  readonly source: 'measured' | 'estimated' | 'bounded'
  /** What the call cost the operator, in nano-units. Absent: not known. */
  readonly cost?: bigint | undefined
}

export function withLateCharge(entry: CallLogEntry, charge: LateCharge): CallLogEntry {
  const { reserved, amount, items, seconds, tokens, source, cost } = charge
  return {
    ...entry,
    usage: {
      input_tokens: 0,
      cached_input_tokens: 0,
      cache_write_tokens: 0,
      output_tokens: tokens,
      seconds,
      source,
      ...(source === 'bounded' && { reported: { output_tokens: tokens, seconds } }),
    },
    billing: {
      currency: CURRENCY,
      reserved: formatAmount(reserved),
      charged: formatAmount(amount),
      required: null,
      available: null,
      items: items.map(itemOf),
      ...(cost !== undefined && { cost: formatAmount(cost) }),
    },
  }
}
