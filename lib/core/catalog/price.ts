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
  /** Per begun minute of an answer or WebSocket that is passed on. */
  readonly perMinute: bigint
}

/** Prices that replace others for calls with more input. */
export interface PriceTier extends Partial<UnitPrices> {
  /** The tier holds for calls with more input tokens, for all that they use. */
  readonly aboveInputTokens: number
}

/** All prices of a call. */
export interface Price extends UnitPrices {
  /** Of several tiers, the highest that a call reaches holds. Undefined: its input does not matter. */
  readonly tiers?: readonly PriceTier[] | undefined
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

/**
 * Replaces some prices. A price that equals the one it defaults to, such as that of cached input, follows it.
 *
 * @example
 * pricedBy(FREE, { inputPerMillion: 150_000_000n }).cachedInputPerMillion // 150000000n
 */
export function pricedBy(base: Price, own: Partial<Price>): Price {
  const price: { -readonly [Name in keyof Price]: Price[Name] } = { ...base, ...own }
  for (const [name, followed] of FOLLOWED) {
    if (own[name] === undefined && base[name] === base[followed]) price[name] = price[followed]
  }
  return price
}

/** Returns the prices of a call with this much input, cached tokens included. */
export function priceAt(price: Price, inputTokens: number): Price {
  if (!price.tiers) return price
  let reached: PriceTier | undefined
  for (const tier of price.tiers) {
    const { aboveInputTokens: above } = tier
    if (inputTokens > above && above >= (reached?.aboveInputTokens ?? 0)) reached = tier
  }
  if (!reached) return price
  const { aboveInputTokens: _, ...own } = reached
  return pricedBy(price, own)
}
