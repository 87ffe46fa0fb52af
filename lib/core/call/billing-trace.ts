import type { Price } from '../catalog/index.ts'

/** The line whose answer the call's usage is of, at what it costs there. Written by `route`. */
export interface ServedBy {
  readonly line: string
  readonly price: Price
}

/** One term of what a call costs. */
export interface ChargeItem {
  readonly unit:
    | 'input'
    | 'cached_input'
    | 'cache_write'
    | 'output'
    | 'request'
    | 'image'
    | 'second'
    | 'search_unit'
    | 'own'
  readonly quantity: number
  /** Nano-units: per million for tokens, else for one. */
  readonly price: bigint
}

/** What a call's money came to. Written by `billingGuard`. Amounts are nano-units. */
export interface BillingTrace {
  /** The most the call could cost, held for it while it ran; null where it was refused. */
  reserved: bigint | null
  /** null while nothing is charged. */
  charged: bigint | null
  /** Of a refused call: what it needed, and what there was. */
  required: bigint | null
  available: bigint | null
  /** How the charge came about. */
  items: readonly ChargeItem[]
  /** What the call's own handler has charged so far; undefined while it has charged nothing. */
  own: bigint | undefined
}
