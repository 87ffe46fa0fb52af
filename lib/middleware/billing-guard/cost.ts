import {
  amountOf,
  type CallRequest,
  type ChargeItem,
  type Principal,
  type Usage,
} from '../../core/call/index.ts'
import { type Catalog, type Line, type Model, type Price, priceOn } from '../../core/catalog/index.ts'
import { MAX_TOKENS_PER_IMAGE } from '../../core/operations/images-answer.ts'
import type { PriceUnit } from '../../core/operations/operation.ts'

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
export function costOf(usage: Usage, price: Price): Cost {
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens } = usage
  const { images = 0, seconds = 0, searchUnits = 0, minutes = 0 } = usage
  const outputPaid = outputTokens > 0 && price.outputPerMillion > 0n
  const inputPaid = inputTokens > 0 && price.inputPerMillion > 0n
  const plainInput = Math.max(0, inputTokens - cachedInputTokens - cacheWriteTokens)
  const items: ChargeItem[] = []
  add(items, 'input', plainInput, price.inputPerMillion)
  add(items, 'cached_input', cachedInputTokens, price.cachedInputPerMillion)
  add(items, 'cache_write', cacheWriteTokens, price.cacheWritePerMillion)
  add(items, 'output', outputTokens, price.outputPerMillion)
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

/** The output assumed if neither the request nor the catalogue limits it. */
const UNBOUNDED_OUTPUT_TOKENS = 32_768

/** The highest price of each unit for a model, in nano-units. */
interface HighestPrices {
  inputPerMillion: bigint
  outputPerMillion: bigint
  perRequest: bigint
  perImage: bigint
  perSearchUnit: bigint
  perSecond: bigint
}

/**
 * Computes the largest possible cost of a call over all lines that may serve it: 1.25 × the estimated input at the
 * highest input or cache-write price, all answers at full length or all images at the highest price, and the prices
 * by unit.
 */
export class WorstCase {
  readonly #byCatalog = new WeakMap<Catalog, Map<string, HighestPrices>>()

  /** Returns the cost in nano-units, rounded half up. */
  of(catalog: Catalog, request: CallRequest, principal: Principal | null): bigint {
    const { model, operation, estimatedInputTokens } = request
    const highest = this.#highestOf(catalog, model, principal)
    // The input counts five quarters, because the estimate may be short by that much. In quarters of millionths all
    // terms are integers.
    const quarters =
      BigInt(estimatedInputTokens) * 5n * highest.inputPerMillion +
      MAX_OUTPUT_COST[operation.priceUnit](request, highest) * 4n +
      highest.perRequest * 4_000_000n
    return (quarters + 2_000_000n) / 4_000_000n
  }

  /** Returns the highest prices of all lines, cached per catalogue, or of the lines in the account's regions. */
  #highestOf(catalog: Catalog, model: Model, principal: Principal | null): HighestPrices {
    const regions = principal?.lineRegions
    const lines = catalog.linesOf(model.id)
    if (regions) return highestOf(model, lines.filter(isIn(regions)))
    const byModel = this.#byCatalog.get(catalog) ?? new Map<string, HighestPrices>()
    this.#byCatalog.set(catalog, byModel)
    const known = byModel.get(model.id) ?? highestOf(model, lines)
    byModel.set(model.id, known)
    return known
  }
}

/** The largest cost of a call's output by its price unit, in millionths of nano-units. */
const MAX_OUTPUT_COST: Readonly<Record<PriceUnit, (request: CallRequest, highest: HighestPrices) => bigint>> =
  {
    tokens: ({ answers, maxOutputTokens, model }, { outputPerMillion }) => {
      const output =
        maxOutputTokens ?? model.maxOutputTokens ?? model.contextWindow ?? UNBOUNDED_OUTPUT_TOKENS
      return BigInt(answers * output) * outputPerMillion
    },
    input: () => 0n,
    images: ({ units, model }, { outputPerMillion, perImage }) => {
      const tokens = BigInt(model.maxOutputTokens ?? MAX_TOKENS_PER_IMAGE)
      return BigInt(units) * largest(tokens * outputPerMillion, perImage * 1_000_000n)
    },
    seconds: ({ units }, { perSecond }) => BigInt(units) * perSecond * 1_000_000n,
    searches: ({ units }, { perSearchUnit }) => BigInt(units) * perSearchUnit * 1_000_000n,
    none: () => 0n,
  }

function isIn(regions: readonly string[]): (line: Line) => boolean {
  return ({ region }) => region !== undefined && regions.includes(region)
}

const NOTHING: Readonly<HighestPrices> = {
  inputPerMillion: 0n,
  outputPerMillion: 0n,
  perRequest: 0n,
  perImage: 0n,
  perSearchUnit: 0n,
  perSecond: 0n,
}

function highestOf(model: Model, lines: readonly Line[]): HighestPrices {
  const highest: HighestPrices = { ...NOTHING }
  for (const line of lines) {
    const price = priceOn(model, line)
    // Only Anthropic-style lines have a separate price for cache writes.
    const input =
      line.protocol === 'anthropic'
        ? largest(price.inputPerMillion, price.cacheWritePerMillion)
        : price.inputPerMillion
    highest.inputPerMillion = largest(highest.inputPerMillion, input)
    highest.outputPerMillion = largest(highest.outputPerMillion, price.outputPerMillion)
    highest.perRequest = largest(highest.perRequest, price.perRequest)
    highest.perImage = largest(highest.perImage, price.perImage)
    highest.perSecond = largest(highest.perSecond, price.perSecond)
    highest.perSearchUnit = largest(highest.perSearchUnit, price.perSearchUnit)
  }
  return highest
}

function largest(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}
