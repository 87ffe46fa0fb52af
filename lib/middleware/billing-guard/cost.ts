import {
  amountOf,
  type CallRequest,
  type ChargeItem,
  heldInput,
  heldOutput,
  type OpenCall,
  type Principal,
  type Usage,
} from '../../core/call/index.ts'
import {
  type Catalog,
  FREE,
  type Line,
  type Model,
  type Price,
  priceAt,
  priceOn,
  type UnitPrices,
} from '../../core/catalog/index.ts'
import { greatest } from '../../core/catalog/money.ts'
import { tierIn } from '../../core/catalog/service-tier.ts'
import type { PriceUnit } from '../../core/operations/index.ts'
import type { Reservation } from '../../ledger/pool/reservation.ts'

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
  const { images = 0, seconds = 0, searchUnits = 0, webSearches = 0, minutes = 0 } = usage
  const price = base.tiers ? priceAt(base, inputTokens, usage.serviceTier) : base
  const outputPaid = outputTokens > 0 && price.outputPerMillion > 0n
  const inputPaid = inputTokens > 0 && price.inputPerMillion > 0n
  const plainInput = Math.max(0, inputTokens - cachedInputTokens - cacheWriteTokens - audioInputTokens)
  gathered = 0
  gather('input', plainInput, price.inputPerMillion)
  gather('audio_input', audioInputTokens, price.audioInputPerMillion)
  gather('cached_input', cachedInputTokens, price.cachedInputPerMillion)
  gather('cache_write', cacheWriteTokens - cacheWrite1hTokens, price.cacheWritePerMillion)
  gather('cache_write_1h', cacheWrite1hTokens, price.cacheWrite1hPerMillion)
  gather('output', outputTokens - audioOutputTokens, price.outputPerMillion)
  gather('audio_output', audioOutputTokens, price.audioOutputPerMillion)
  gather('request', 1, price.perRequest)
  if (!outputPaid) gather('image', images, price.perImage)
  if (!outputPaid) gather('second', seconds, price.perSecond)
  if (!inputPaid) gather('search_unit', searchUnits, price.perSearchUnit)
  gather('web_search', webSearches, price.perWebSearch)
  gather('minute', minutes, price.perMinute)
  const items = gatheredItems.slice(0, gathered)
  return { amount: amountOf(items), items }
}

/** The items of the cost that is being computed, in a list for all: one that grows reserves room for sixteen more. */
const gatheredItems: ChargeItem[] = []
let gathered = 0

/** Adds an item, unless its quantity or price is zero. */
function gather(unit: ChargeItem['unit'], quantity: number, price: bigint): void {
  if (quantity > 0 && price > 0n) gatheredItems[gathered++] = { unit, quantity, price }
}

/** The highest price of each unit for a model, in nano-units. */
type HighestPrices = { -readonly [Unit in keyof UnitPrices]: bigint }

/** The highest prices for calls with more input than some number of tokens. */
interface Reached {
  readonly above: number
  readonly highest: HighestPrices
  /** The same for calls that ask for a tier of service, by its name. Undefined: none has prices of its own. */
  readonly asked?: ReadonlyMap<string, Reached> | undefined
  /** Whether some input or output is dearer than plain text, so that the request has to be looked at. */
  readonly isVaried: boolean
}

/**
 * Computes the largest possible cost of a call over all lines that may serve it: 1.25 × the estimated input at the
 * highest input or cache-write price, all answers at full length or all images at the highest price, and the prices
 * by unit. Prices are those of each tier that this input reaches, and of the tier of service that the call asks for.
 */
export class WorstCase {
  readonly #byCatalog = new WeakMap<Catalog, WeakMap<Model, readonly Reached[]>>()

  /** Returns the cost in nano-units, rounded half up: that of the dearest model that may serve the call. */
  of(catalog: Catalog, request: CallRequest, principal: Principal | null): bigint {
    return request.fallbacks.reduce(
      (most, model) => greatest(most, this.#ofModel(catalog, { ...request, model }, principal)),
      this.#ofModel(catalog, request, principal),
    )
  }

  #ofModel(catalog: Catalog, request: CallRequest, principal: Principal | null): bigint {
    const { model, estimatedInputTokens, webSearches } = request
    const regions = principal?.lineRegions
    const steps = regions
      ? stepsOf(model, catalog.linesOf(model.id).filter(isIn(regions)))
      : (this.#byCatalog.get(catalog)?.get(model) ?? this.#addSteps(catalog, model))
    let reached = steps[0] as Reached
    for (let i = 1; i < steps.length; i++) {
      const step = steps[i] as Reached
      if (heldInput(request) > step.above) reached = step
    }
    if (reached.asked) reached = reached.asked.get(tierIn(request.body.json) ?? '') ?? reached
    const { highest, isVaried } = reached
    const input = isVaried ? inputPrice(highest, request) : highest.inputPerMillion
    const output = isVaried ? outputPrice(highest, request) : highest.outputPerMillion
    // The input counts five quarters, because the estimate may be short by that much. In quarters of millionths all
    // terms are integers.
    const tokens = heldOutput(request)
    const { priceUnit } = request.operation
    const rough =
      5 * estimatedInputTokens * Number(input) +
      4 * tokens * Number(output) +
      4_000_000 * Number(highest.perRequest) +
      2_000_000
    // A number is exact as long as it is small, and takes no memory: each step of a bigint makes another one.
    if (priceUnit === 'tokens' && webSearches === 0 && rough <= Number.MAX_SAFE_INTEGER)
      return BigInt((rough - (rough % 4_000_000)) / 4_000_000)
    const ofTokens = BigInt(tokens) * output
    const ofOutput = priceUnit === 'tokens' ? ofTokens : greatest(ofTokens, piecesCost(highest, request))
    const ofPieces = highest.perRequest + BigInt(webSearches) * highest.perWebSearch
    const quarters = BigInt(5 * estimatedInputTokens) * input + ofOutput * 4n + ofPieces * 4_000_000n
    return (quarters + 2_000_000n) / 4_000_000n
  }

  /** Computes the highest prices of all lines, once for each model of a catalogue. */
  #addSteps(catalog: Catalog, model: Model): readonly Reached[] {
    const byModel = this.#byCatalog.get(catalog) ?? new WeakMap<Model, readonly Reached[]>()
    this.#byCatalog.set(catalog, byModel)
    const steps = stepsOf(model, catalog.linesOf(model.id))
    byModel.set(model, steps)
    return steps
  }
}

/**
 * Whether nothing that a call can use has a price, at any line of its model and its fallbacks. A model without lines may be served,
 * and charged, by a handler.
 */
export function isFreeOn(catalog: Catalog, { model, fallbacks }: CallRequest): boolean {
  return [model, ...fallbacks].every((each) => {
    const lines = catalog.linesOf(each.id)
    return lines.length > 0 && lines.every((line) => hasNoPrice(priceOn(each, line)))
  })
}

function hasNoPrice(price: Price): boolean {
  return [price, ...(price.tiers ?? [])].every((each: Partial<UnitPrices>) =>
    UNITS.every((unit) => !each[unit]),
  )
}

/** Returns the largest cost of a call's pieces, in millionths of nano-units. */
function piecesCost(highest: HighestPrices, { operation, units }: CallRequest): bigint {
  const unit = PIECES[operation.priceUnit]
  return unit === undefined ? 0n : BigInt(units) * highest[unit] * 1_000_000n
}

const PIECES: Readonly<Partial<Record<PriceUnit, keyof UnitPrices>>> = {
  images: 'perImage',
  seconds: 'perSecond',
  searches: 'perSearchUnit',
}

/** Returns the dearest price of the input that a request can have. */
function inputPrice(highest: HighestPrices, request: CallRequest): bigint {
  const { inputPerMillion, cacheWrite1hPerMillion, audioInputPerMillion } = highest
  let price = inputPerMillion
  if (cacheWrite1hPerMillion > price && mentions(request, '"1h"')) price = cacheWrite1hPerMillion
  if (audioInputPerMillion > price && mentions(request, 'audio')) price = audioInputPerMillion
  return price
}

function outputPrice(
  { outputPerMillion, audioOutputPerMillion }: HighestPrices,
  request: CallRequest,
): bigint {
  return audioOutputPerMillion > outputPerMillion && mentions(request, '"audio"')
    ? audioOutputPerMillion
    : outputPerMillion
}

/** Whether a body may contain a word. It may be written in escapes; a form has no bytes any more. */
function mentions({ body: { raw } }: CallRequest, word: string): boolean {
  return raw.length === 0 || raw.includes(word) || raw.includes('\\u')
}

function isIn(regions: readonly string[]): (line: Line) => boolean {
  return ({ region }) => region !== undefined && regions.includes(region)
}

/** Returns the highest prices at any input, then those from each tier's input on. A tier may be cheaper than the base. */
function stepsOf(model: Model, lines: readonly Line[]): readonly Reached[] {
  const prices = lines.map((line) => priceOn(model, line))
  const tiers = prices.flatMap((price) => price.tiers ?? [])
  const starts = new Set(tiers.map(({ aboveInputTokens = 0 }) => aboveInputTokens))
  const served = new Set(tiers.flatMap(({ serviceTier }) => serviceTier ?? []))
  const above = [...new Set([0, ...starts])].sort((a, b) => a - b)
  const usual = raisedSteps(prices, above)
  if (served.size === 0) return usual
  const dearer = Array.from(served, (name) => [name, raisedSteps(prices, above, name)] as const)
  return usual.map((step, i) => ({
    ...step,
    asked: new Map(dearer.map(([name, steps]) => [name, steps[i] ?? step])),
  }))
}

/** @param served a tier of service that the line may serve, or not. */
function raisedSteps(prices: readonly Price[], starts: readonly number[], served?: string): Reached[] {
  const highest: HighestPrices = { ...FREE }
  return starts.map((above) => {
    for (const price of prices) {
      raise(highest, priceAt(price, above + 1))
      if (served !== undefined) raise(highest, priceAt(price, above + 1, served))
    }
    return { above, highest: { ...highest }, isVaried: isVaried(highest) }
  })
}

function isVaried(highest: HighestPrices): boolean {
  const { inputPerMillion, outputPerMillion } = highest
  return (
    highest.cacheWrite1hPerMillion > inputPerMillion ||
    highest.audioInputPerMillion > inputPerMillion ||
    highest.audioOutputPerMillion > outputPerMillion
  )
}

function raise(highest: HighestPrices, price: UnitPrices): void {
  // Only the answer shows how much of the input the line wrote into its cache.
  const input = greatest(price.inputPerMillion, price.cacheWritePerMillion)
  for (const unit of UNITS)
    highest[unit] = greatest(highest[unit], unit === 'inputPerMillion' ? input : price[unit])
}

const UNITS = Object.keys(FREE) as (keyof UnitPrices)[]

/**
 * Bounds the cost of what upstreams report, so that it leaves the account below zero by at most one reservation. The usage
 * is marked then, and an item shows what is not charged.
 */
export function boundedCost(call: OpenCall, cost: Cost, { most }: Pick<Reservation, 'most'>): Cost {
  const { usage, billing } = call
  if (billing?.own !== undefined || !usage || most === undefined || cost.amount <= most) return cost
  const { source: _, reported, ...counts } = usage
  call.usage = { ...usage, source: 'bounded', reported: reported ?? counts }
  const waived = { unit: 'bounded', quantity: 1, price: most - cost.amount } as const
  return { amount: most, items: [...cost.items, waived] }
}
