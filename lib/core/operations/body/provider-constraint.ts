import { z } from 'zod'
import { parseAmount } from '../../catalog/index.ts'
import { WELL_FORMED } from '../../json/index.ts'
import { listOf } from './list-of.ts'

/** The log entry keeps it. */
const name = z
  .string()
  .min(1)
  .refine(...WELL_FORMED)
const names = listOf(name.max(200), 0, 100)
const ceiling = z
  .union([z.number().min(0), z.string().regex(/^\d{1,12}(\.\d{1,9})?$/)], {
    error: 'must be a price: a number, or a decimal string such as "0.15"',
  })
  .optional()

/**
 * The request's `provider` object: the caller's demands on the lines, in the members known from hosted model routers.
 * Unknown members are refused, because ignoring a demand would violate it.
 */
export const providerConstraintSchema = z.strictObject({
  only: names.optional(),
  ignore: names.optional(),
  order: names.optional(),
  allow_fallbacks: z.boolean().optional(),
  sort: z.enum(['price', 'latency', 'throughput']).optional(),
  max_price: z
    .strictObject({ prompt: ceiling, completion: ceiling, request: ceiling, image: ceiling })
    .optional(),
  region: z.union([name, names], { error: 'must be a region or a list of regions' }).optional(),
})

/** The highest accepted prices in nano-units: per million tokens, per request and per image. */
export interface PriceCeiling {
  readonly prompt?: bigint | undefined
  readonly completion?: bigint | undefined
  readonly request?: bigint | undefined
  readonly image?: bigint | undefined
}

/** The caller's demands on the lines. `only`, `ignore` and `order` name providers or lines. */
export interface ProviderConstraint {
  readonly only?: readonly string[] | undefined
  readonly ignore?: readonly string[] | undefined
  readonly order?: readonly string[] | undefined
  /** false: only the lines in `order` may serve; without `order`, only the first choice. */
  readonly allowFallbacks: boolean
  readonly sort?: 'price' | 'latency' | 'throughput' | undefined
  readonly maxPrice?: PriceCeiling | undefined
  readonly regions?: readonly string[] | undefined
}

/** Converts the parsed `provider` object into a {@link ProviderConstraint}. */
export function toProviderConstraint(given: z.output<typeof providerConstraintSchema>): ProviderConstraint {
  return {
    only: given.only,
    ignore: given.ignore,
    order: given.order,
    allowFallbacks: given.allow_fallbacks ?? true,
    sort: given.sort,
    maxPrice: given.max_price && {
      prompt: nanos(given.max_price.prompt),
      completion: nanos(given.max_price.completion),
      request: nanos(given.max_price.request),
      image: nanos(given.max_price.image),
    },
    regions: typeof given.region === 'string' ? [given.region] : given.region,
  }
}

function nanos(price: number | string | undefined): bigint | undefined {
  if (price === undefined) return undefined
  return parseAmount(typeof price === 'string' ? price : Math.min(price, 999_999_999_999).toFixed(9))
}
