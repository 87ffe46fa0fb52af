import type { CallRequest, Principal } from '../../core/call/index.ts'
import { type Catalog, type Line, type Model, priceOn } from '../../core/catalog/index.ts'
import { MOST_TOKENS_PER_IMAGE, type PriceUnit } from '../../core/operations/index.ts'

/** Output of a model of which neither the request nor the catalogue says how much it can be. */
const UNBOUNDED_OUTPUT_TOKENS = 32_768

/** The dearest that each unit can be for a model, in nano-units. */
interface Dearest {
  inputPerMillion: bigint
  outputPerMillion: bigint
  perRequest: bigint
  perImage: bigint
  perSearchUnit: bigint
  perSecond: bigint
}

/**
 * Works out the most that calls can cost, over all lines that may serve them: 1.25 × the estimated input at
 * the dearest input or cache-write price, every answer at the longest it may be or every image at the dearest, and the
 * prices by unit.
 */
export class WorstCase {
  readonly #byCatalog = new WeakMap<Catalog, Map<string, Dearest>>()

  /** Nano-units, rounded half up. */
  of(catalog: Catalog, request: CallRequest, principal: Principal | null): bigint {
    const { model, operation, estimatedInputTokens } = request
    const dearest = this.#dearestOf(catalog, model, principal)
    // Five quarters of the input: the estimate may be short by as much. In quarters of millionths all is whole.
    const quarters =
      BigInt(estimatedInputTokens) * 5n * dearest.inputPerMillion +
      MOST_MADE[operation.priceUnit](request, dearest) * 4n +
      dearest.perRequest * 4_000_000n
    return (quarters + 2_000_000n) / 4_000_000n
  }

  /** Of all lines where the account may use all, once for a catalogue; else of those it may use. */
  #dearestOf(catalog: Catalog, model: Model, principal: Principal | null): Dearest {
    const regions = principal?.lineRegions
    const lines = catalog.linesOf(model.id)
    if (regions) return dearestOf(model, lines.filter(isIn(regions)))
    const byModel = this.#byCatalog.get(catalog) ?? new Map<string, Dearest>()
    this.#byCatalog.set(catalog, byModel)
    const known = byModel.get(model.id) ?? dearestOf(model, lines)
    byModel.set(model.id, known)
    return known
  }
}

/** The most that a call can make, by what it is charged by, in millionths of nano-units. */
const MOST_MADE: Readonly<Record<PriceUnit, (request: CallRequest, dearest: Dearest) => bigint>> = {
  tokens: ({ answers, maxOutputTokens, model }, { outputPerMillion }) => {
    const output = maxOutputTokens ?? model.maxOutputTokens ?? model.contextWindow ?? UNBOUNDED_OUTPUT_TOKENS
    return BigInt(answers * output) * outputPerMillion
  },
  input: () => 0n,
  images: ({ units, model }, { outputPerMillion, perImage }) => {
    const tokens = BigInt(model.maxOutputTokens ?? MOST_TOKENS_PER_IMAGE)
    return BigInt(units) * largest(tokens * outputPerMillion, perImage * 1_000_000n)
  },
  seconds: ({ units }, { perSecond }) => BigInt(units) * perSecond * 1_000_000n,
  searches: ({ units }, { perSearchUnit }) => BigInt(units) * perSearchUnit * 1_000_000n,
  none: () => 0n,
}

function isIn(regions: readonly string[]): (line: Line) => boolean {
  return ({ region }) => region !== undefined && regions.includes(region)
}

const NOTHING: Readonly<Dearest> = {
  inputPerMillion: 0n,
  outputPerMillion: 0n,
  perRequest: 0n,
  perImage: 0n,
  perSearchUnit: 0n,
  perSecond: 0n,
}

function dearestOf(model: Model, lines: readonly Line[]): Dearest {
  const dearest: Dearest = { ...NOTHING }
  for (const line of lines) {
    const price = priceOn(model, line)
    // Only an Anthropic-style line writes its caches at a price of their own.
    const input =
      line.protocol === 'anthropic'
        ? largest(price.inputPerMillion, price.cacheWritePerMillion)
        : price.inputPerMillion
    dearest.inputPerMillion = largest(dearest.inputPerMillion, input)
    dearest.outputPerMillion = largest(dearest.outputPerMillion, price.outputPerMillion)
    dearest.perRequest = largest(dearest.perRequest, price.perRequest)
    dearest.perImage = largest(dearest.perImage, price.perImage)
    dearest.perSecond = largest(dearest.perSecond, price.perSecond)
    dearest.perSearchUnit = largest(dearest.perSearchUnit, price.perSearchUnit)
  }
  return dearest
}

function largest(one: bigint, other: bigint): bigint {
  return one > other ? one : other
}
