import { formatAmount, type Price } from '../catalog/index.ts'
import type { GatewayError } from '../errors/index.ts'
import { MAX_TOKENS_PER_IMAGE } from '../operations/images/images-answer.ts'
import type { CallRequest } from './parts.ts'

/** The line whose answer the usage belongs to, and the price on it. Written by `route`. */
export interface ServedBy {
  readonly line: string
  readonly price: Price
  /** The price that the operator pays for the line; undefined = not known. */
  readonly cost?: Price | undefined
}

/** One term of a charge. */
export interface ChargeItem {
  readonly unit:
    | 'input'
    | 'cached_input'
    | 'cache_write'
    | 'cache_write_1h'
    | 'audio_input'
    | 'output'
    | 'audio_output'
    | 'request'
    | 'image'
    | 'second'
    | 'search_unit'
    | 'web_search'
    | 'minute'
    | 'own'
    /** The amount that is not charged because the account does not have it; its price is negative. */
    | 'bounded'
  readonly quantity: number
  /** In nano-units: per million for tokens, else for one. */
  readonly price: bigint
}

/** Money that is held for a further part of a call. */
export interface HeldPart {
  /** Charges it durably. Resolves to an error if the call must not go on. */
  charge(): Promise<GatewayError | undefined>
  /** Releases it unused; does nothing once it is charged. */
  release(): void
}

/** The amounts held and charged for a call, in nano-units. Written by `billingGuard`. */
export interface BillingTrace {
  /** The highest cost of the call, held while it ran; null if the call was refused. */
  reserved: bigint | null
  /** null while nothing is charged. */
  charged: bigint | null
  /** The operator's cost of the call; null if that is not known. Absent: as null. */
  cost?: bigint | null
  /** For a refused call: the amount that it needed, and the amount that was available. */
  required: bigint | null
  available: bigint | null
  /** The budget that refused the call; absent if none did. */
  budget?: string
  /** The terms of the charge. */
  items: readonly ChargeItem[]
  /** The amount that the app's own handler has charged so far; undefined if it has charged nothing. */
  own: bigint | undefined
  /** Holds money for a further part of a call that goes on. Resolves to an error if there is none. */
  holdPart?(item: ChargeItem): Promise<HeldPart | GatewayError>
}

/** The trace of a call that has neither held nor charged anything. */
export const NO_BILLING: Readonly<BillingTrace> = {
  reserved: null,
  charged: null,
  required: null,
  available: null,
  items: [],
  own: undefined,
}

/** Returns what some items come to: exact, and rounded half up to the nano-unit once. */
export function amountOf(items: readonly ChargeItem[]): bigint {
  let millionths = 0n
  for (const { unit, quantity, price } of items)
    millionths += BigInt(Math.round(TOKEN_UNITS.has(unit) ? quantity : quantity * 1_000_000)) * price
  return (millionths + 500_000n) / 1_000_000n
}

/** Their price is per million. */
const TOKEN_UNITS: ReadonlySet<ChargeItem['unit']> = new Set([
  'input',
  'cached_input',
  'cache_write',
  'cache_write_1h',
  'audio_input',
  'output',
  'audio_output',
])

/** Amounts are decimal strings. */
export interface BillingSummary {
  readonly currency: string
  readonly reserved: string | null
  readonly charged: string | null
  /** The operator's cost of the call. It is for operators only, and absent if it is not known. */
  readonly cost?: string
  readonly required: string | null
  readonly available: string | null
  /** The budget that refused the call; absent if none did. */
  readonly budget?: string
  /** The terms of the charge; they add up to it before rounding. */
  readonly items: readonly ChargeItemSummary[]
}

export interface ChargeItemSummary {
  readonly unit: ChargeItem['unit']
  readonly quantity: number
  /** Per million for tokens, else for one. */
  readonly price: string
}

/** The currency of all amounts. */
export const CURRENCY = 'USD'

/** The billing of a call as the log keeps it. */
export function billingOf(billing: BillingTrace): BillingSummary {
  const { reserved, charged, cost = null, required, available, budget, items } = billing
  const summary: { -readonly [Name in keyof BillingSummary]: BillingSummary[Name] } = {
    currency: CURRENCY,
    reserved: reserved === null ? null : formatAmount(reserved),
    charged: charged === null ? null : formatAmount(charged),
    required: required === null ? null : formatAmount(required),
    available: available === null ? null : formatAmount(available),
    items: items.map(itemOf),
  }
  if (cost !== null) summary.cost = formatAmount(cost)
  if (budget !== undefined) summary.budget = budget
  return summary
}

/** An item as log and ledger keep it. */
export function itemOf({ unit, quantity, price }: ChargeItem): ChargeItemSummary {
  return { unit, quantity, price: formatAmount(price) }
}

/** The factor by which the input may exceed its estimate. */
const INPUT_MARGIN = 1.25

/** The output assumed if neither the request nor the catalogue limits it. */
const UNBOUNDED_OUTPUT_TOKENS = 32_768

/** Returns the input tokens that a call's reservation covers. */
export function heldInput({ estimatedInputTokens }: Pick<CallRequest, 'estimatedInputTokens'>): number {
  return Math.ceil(INPUT_MARGIN * estimatedInputTokens)
}

/** Returns the output tokens that a call's reservation covers: those of all answers, or of all images. */
export function heldOutput({ operation, answers, units, maxOutputTokens, model }: CallRequest): number {
  if (operation.priceUnit === 'images') return units * (model.maxOutputTokens ?? MAX_TOKENS_PER_IMAGE)
  if (operation.priceUnit !== 'tokens') return 0
  return (
    answers * (maxOutputTokens ?? model.maxOutputTokens ?? model.contextWindow ?? UNBOUNDED_OUTPUT_TOKENS)
  )
}
