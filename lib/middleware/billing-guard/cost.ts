import { type ChargeItem, sumOfItems, type Usage } from '../../core/call/index.ts'
import type { Price } from '../../core/catalog/index.ts'

/** The cost of a call in nano-units, and the items that add up to it. */
export interface Cost {
  readonly amount: bigint
  readonly items: readonly ChargeItem[]
}

/**
 * Returns the cost of a call's usage at a line's price, rounded half up to the nano-unit once. A unit that is priced
 * by the piece and by tokens is charged once, by tokens if there are any: images and video by output tokens, searches
 * by input tokens.
 *
 * @example
 * costOf({ inputTokens: 40, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 11, source: 'measured' }, price)
 */
export function costOf(usage: Usage, price: Price): Cost {
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens } = usage
  const { images = 0, seconds = 0, searchUnits = 0 } = usage
  const outputPaid = outputTokens > 0 && price.outputPerMillion > 0n
  const inputPaid = inputTokens > 0 && price.inputPerMillion > 0n
  const plainInput = Math.max(0, inputTokens - cachedInputTokens - cacheWriteTokens)
  const terms: ChargeItem[] = []
  add(terms, 'input', plainInput, price.inputPerMillion)
  add(terms, 'cached_input', cachedInputTokens, price.cachedInputPerMillion)
  add(terms, 'cache_write', cacheWriteTokens, price.cacheWritePerMillion)
  add(terms, 'output', outputTokens, price.outputPerMillion)
  add(terms, 'request', 1, price.perRequest)
  if (!outputPaid) add(terms, 'image', images, price.perImage)
  if (!outputPaid) add(terms, 'second', seconds, price.perSecond)
  if (!inputPaid) add(terms, 'search_unit', searchUnits, price.perSearchUnit)
  return sumOfItems(terms)
}

/** Adds an item, unless its quantity or price is zero. */
function add(terms: ChargeItem[], unit: ChargeItem['unit'], quantity: number, price: bigint): void {
  if (quantity > 0 && price > 0n) terms.push({ unit, quantity, price })
}
