/** One unit of a currency in nano-units. All amounts are integers of nano-units. */
export const NANOS_PER_UNIT = 1_000_000_000n

/** The largest amount, positive or negative: every ledger stores amounts in 64 bits. */
export const MAX_AMOUNT = 2n ** 63n - 1n

/** @throws RangeError if a figure, which may be negative, does not fit 64 bits. */
export function assertFigure(figure: bigint, what: string): bigint {
  if (figure <= MAX_AMOUNT && figure >= -MAX_AMOUNT) return figure
  throw new RangeError(`${what} would be ${figure} nano-units, more than 64 bits hold`)
}

/** @throws RangeError if an amount is negative, or does not fit 64 bits. */
export function assertAmount(amount: bigint, what: string): void {
  if (amount >= 0n && amount <= MAX_AMOUNT) return
  throw new RangeError(`${what}: an amount must be from 0 to ${MAX_AMOUNT} nano-units, and is ${amount}`)
}

/** Returns the least of some amounts. */
export function least(first: bigint, ...others: readonly bigint[]): bigint {
  let least = first
  for (const each of others) if (each < least) least = each
  return least
}

/** Returns the greatest of some amounts. */
export function greatest(first: bigint, ...others: readonly bigint[]): bigint {
  let greatest = first
  for (const each of others) if (each > greatest) greatest = each
  return greatest
}

const DECIMAL = /^(-?)(\d{1,12})(?:\.(\d{1,9}))?$/

/** The form of the amounts that every ledger can store, for error messages. */
export const AMOUNT_FORM = 'a decimal string such as "12.50", below 9223372036, with at most 9 decimal places'

/** Whether {@link parseAmount} accepts a text: at most 12 digits before the decimal point and 9 behind it. */
export function isAmount(text: string): boolean {
  return DECIMAL.test(text)
}

/**
 * Parses a decimal string into nano-units: `"0.15"` → `150000000n`.
 *
 * @throws RangeError if the text is not a decimal amount with at most 12 digits and 9 decimal places.
 */
export function parseAmount(text: string): bigint {
  const match = DECIMAL.exec(text)
  if (!match)
    throw new RangeError(
      `"${text}" is not a decimal amount such as "12.50" (at most 12 digits and 9 decimal places)`,
    )
  const [, sign, whole = '0', fraction = ''] = match
  const nanos = BigInt(whole) * NANOS_PER_UNIT + BigInt(fraction.padEnd(9, '0'))
  return sign === '-' ? -nanos : nanos
}

/** Formats nano-units as a decimal string without trailing zeros: `123000n` → `"0.000123"`. */
export function formatAmount(nanos: bigint): string {
  if (nanos < 0n || nanos > MAX_SAFE_NANOS) return formatBigInt(nanos)
  // Most amounts are what a number holds exactly. It is several times as fast, and each call formats several amounts.
  const number = Number(nanos)
  const rest = number % NUMBER_PER_UNIT
  const whole = (number - rest) / NUMBER_PER_UNIT
  if (rest === 0) return String(whole)
  // The unit adds a leading 1, which preserves the leading zeros.
  const digits = String(NUMBER_PER_UNIT + rest)
  let end = digits.length
  while (digits.charCodeAt(end - 1) === ZERO) end--
  return `${whole}.${digits.slice(1, end)}`
}

const MAX_SAFE_NANOS = BigInt(Number.MAX_SAFE_INTEGER)
const NUMBER_PER_UNIT = Number(NANOS_PER_UNIT)
const ZERO = '0'.charCodeAt(0)

function formatBigInt(nanos: bigint): string {
  const sign = nanos < 0n ? '-' : ''
  const absolute = nanos < 0n ? -nanos : nanos
  const fraction = (absolute % NANOS_PER_UNIT).toString().padStart(9, '0').replace(/0+$/, '')
  return `${sign}${absolute / NANOS_PER_UNIT}${fraction === '' ? '' : `.${fraction}`}`
}

/** Prices in nano-units of the currency; those named `PerMillion` are per million tokens. Zero means free. */
export interface UnitPrices {
  readonly inputPerMillion: bigint
  readonly outputPerMillion: bigint
  readonly cachedInputPerMillion: bigint
  readonly cacheWritePerMillion: bigint
  /** Of input that is written to a cache for an hour. */
  readonly cacheWrite1hPerMillion: bigint
  readonly audioInputPerMillion: bigint
  readonly audioOutputPerMillion: bigint
  readonly perRequest: bigint
  readonly perImage: bigint
  /** Per second of video. */
  readonly perSecond: bigint
  /** Per search unit of a rerank. */
  readonly perSearchUnit: bigint
  /** Per web search that the provider runs for an answer. */
  readonly perWebSearch: bigint
  /** Per begun minute of an answer or WebSocket that is passed on. */
  readonly perMinute: bigint
}

/** Prices that replace others for calls with more input, or in a tier of service. */
export interface PriceTier extends Partial<UnitPrices> {
  /** The tier holds for calls with more input tokens, for all that they use. Undefined: for any input. */
  readonly aboveInputTokens?: number | undefined
  /** The tier holds for calls that were served so, such as `priority`. Undefined: however they were. */
  readonly serviceTier?: string | undefined
}

/** All prices of a call. */
export interface Price extends UnitPrices {
  /**
   * Of several tiers, the highest that a call reaches holds; those for its tier of service come before all others. Undefined: there
   * are none.
   */
  readonly tiers?: readonly PriceTier[] | undefined
  /** The prices that were given, of those that could follow another one. Undefined: those that differ from it. */
  readonly given?: readonly FollowingPrice[] | undefined
}

/** All prices zero. */
export const FREE: UnitPrices = {
  inputPerMillion: 0n,
  outputPerMillion: 0n,
  cachedInputPerMillion: 0n,
  cacheWritePerMillion: 0n,
  cacheWrite1hPerMillion: 0n,
  audioInputPerMillion: 0n,
  audioOutputPerMillion: 0n,
  perRequest: 0n,
  perImage: 0n,
  perSecond: 0n,
  perSearchUnit: 0n,
  perWebSearch: 0n,
  perMinute: 0n,
}

/** The prices that another one stands in for as long as they are not given, in the order in which they follow. */
const FOLLOWED = [
  ['cachedInputPerMillion', 'inputPerMillion'],
  ['cacheWritePerMillion', 'inputPerMillion'],
  ['cacheWrite1hPerMillion', 'cacheWritePerMillion'],
  ['audioInputPerMillion', 'inputPerMillion'],
  ['audioOutputPerMillion', 'outputPerMillion'],
] as const

export type FollowingPrice = (typeof FOLLOWED)[number][0]

/**
 * Replaces some prices. A price that was never given, such as that of cached input, follows the one that it defaults to.
 *
 * @example
 * pricedBy(FREE, { inputPerMillion: 150_000_000n }).cachedInputPerMillion // 150000000n
 */
export function pricedBy(base: Price, own: Partial<Price>): Price {
  const price: { -readonly [Name in keyof Price]: Price[Name] } = { ...base, ...own }
  const given: FollowingPrice[] = []
  for (const [name, followed] of FOLLOWED) {
    if (own[name] !== undefined || base.given?.includes(name)) given.push(name)
    else if (base[name] === base[followed]) price[name] = price[followed]
  }
  if (given.length > 0) price.given = given
  return price
}

/**
 * Returns the prices of a call with this much input, cached tokens included.
 *
 * @param served the tier of service; undefined for the usual one.
 */
export function priceAt(price: Price, inputTokens: number, served?: string): Price {
  if (!price.tiers) return price
  let reached: PriceTier | undefined
  for (const tier of price.tiers) {
    const { aboveInputTokens: above = -1, serviceTier } = tier
    if (inputTokens <= above || (serviceTier !== undefined && serviceTier !== served)) continue
    const isOther = serviceTier !== reached?.serviceTier
    if (!reached || (isOther ? serviceTier !== undefined : above > (reached.aboveInputTokens ?? -1)))
      reached = tier
  }
  if (!reached) return price
  const { aboveInputTokens: _above, serviceTier: _served, ...own } = reached
  return pricedBy(price, own)
}
