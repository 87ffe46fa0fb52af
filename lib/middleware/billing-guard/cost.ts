import { amountOf, type ChargeItem, type Usage } from '../../core/call/index.ts'
import { type Price, priceAt } from '../../core/catalog/index.ts'

/** The cost of a call in nano-units, and the items that add up to it. */
export interface Cost {
  readonly amount: bigint
  readonly items: readonly ChargeItem[]
}

/**
 * Returns the cost of what a call used, at a line's price: exact, and rounded half up to the nano-unit once. What is
 * priced by the piece and by tokens is paid once, by its tokens where it has some: images and video by those of output,
 * searches by those of input.
 *
 * @example
 * costOf({ inputTokens: 40, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 11, source: 'measured' }, price)
 */
export function costOf(usage: Usage, base: Price): Cost {
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens } = usage
  const { cacheWrite1hTokens = 0, audioInputTokens = 0, audioOutputTokens = 0 } = usage
  const { images = 0, seconds = 0, searchUnits = 0, minutes = 0 } = usage
  const price = priceAt(base, inputTokens)
  const outputPaid = outputTokens > 0 && price.outputPerMillion > 0n
  const inputPaid = inputTokens > 0 && price.inputPerMillion > 0n
  const plainInput = Math.max(0, inputTokens - cachedInputTokens - cacheWriteTokens - audioInputTokens)
  const items: ChargeItem[] = []
  add(items, 'input', plainInput, price.inputPerMillion)
  add(items, 'audio_input', audioInputTokens, price.audioInputPerMillion)
  add(items, 'cached_input', cachedInputTokens, price.cachedInputPerMillion)
  add(items, 'cache_write', cacheWriteTokens - cacheWrite1hTokens, price.cacheWritePerMillion)
  add(items, 'cache_write_1h', cacheWrite1hTokens, price.cacheWrite1hPerMillion)
  add(items, 'output', outputTokens - audioOutputTokens, price.outputPerMillion)
  add(items, 'audio_output', audioOutputTokens, price.audioOutputPerMillion)
  add(items, 'request', 1, price.perRequest)
  if (!outputPaid) add(items, 'image', images, price.perImage)
  if (!outputPaid) add(items, 'second', seconds, price.perSecond)
  if (!inputPaid) add(items, 'search_unit', searchUnits, price.perSearchUnit)
  add(items, 'minute', minutes, price.perMinute)
  return { amount: amountOf(items), items }
}

/** Adds an item, unless its quantity or price is zero. */
function add(items: ChargeItem[], unit: ChargeItem['unit'], quantity: number, price: bigint): void {
  if (quantity > 0 && price > 0n) items.push({ unit, quantity, price })
}
