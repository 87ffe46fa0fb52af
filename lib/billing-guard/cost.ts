import { type ChargeItem, sumOfItems, type Usage } from '../call/index.ts'
import type { Price } from '../catalog/index.ts'

/** What a call costs, in nano-units, and the terms that add up to it. */
export interface Cost {
  readonly amount: bigint
  readonly items: readonly ChargeItem[]
}

/**
 * The cost of what a call used, at a line's price (DESIGN 8): exact, and rounded half up to the nano-unit once. What is
 * priced by the piece and by tokens is paid once, by its tokens where it has some: images and video by those of output,
 * searches by those of input.
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
  return sumOfItems([
    { unit: 'input', quantity: plainInput, price: price.inputPerMillion },
    { unit: 'cached_input', quantity: cachedInputTokens, price: price.cachedInputPerMillion },
    { unit: 'cache_write', quantity: cacheWriteTokens, price: price.cacheWritePerMillion },
    { unit: 'output', quantity: outputTokens, price: price.outputPerMillion },
    { unit: 'request', quantity: 1, price: price.perRequest },
    { unit: 'image', quantity: outputPaid ? 0 : images, price: price.perImage },
    { unit: 'second', quantity: outputPaid ? 0 : seconds, price: price.perSecond },
    { unit: 'search_unit', quantity: inputPaid ? 0 : searchUnits, price: price.perSearchUnit },
  ])
}
