import { z } from 'zod'
import { parseAmount } from '../../catalog/index.ts'
import { GatewayError } from '../../errors/index.ts'
import { parseExactly, WELL_FORMED } from '../../json/index.ts'
import { listOf, valueFault } from './body-schema.ts'

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
function toProviderConstraint(given: z.output<typeof providerConstraintSchema>): ProviderConstraint {
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

/** A provider constraint as the caller sent it. */
interface GivenConstraint {
  readonly provider: unknown
  /** The name that error messages use for it. */
  readonly source: 'provider' | 'X-Gateway-Provider'
}

/** Returns the body's `provider`, or else the header, which is for SDKs that reject unknown members. */
export function givenConstraint(
  member: unknown,
  header: string | string[] | undefined,
): GivenConstraint | undefined {
  if (member !== undefined && member !== null) return { provider: member, source: 'provider' }
  return header === undefined ? undefined : { provider: parseHeader(header), source: 'X-Gateway-Provider' }
}

/** The most bytes of a provider constraint as JSON: the log entry of the call keeps it. */
const MAX_CONSTRAINT_BYTES = 4096

export function constraintOf({ provider, source }: GivenConstraint): ProviderConstraint {
  const fault = valueFault(providerConstraintSchema, provider, [source])
  if (fault) throw new GatewayError('invalid_request', fault)
  if (Buffer.byteLength(JSON.stringify(provider)) > MAX_CONSTRAINT_BYTES) throw tooLong(source)
  return toProviderConstraint(provider as z.output<typeof providerConstraintSchema>)
}

function tooLong(param: GivenConstraint['source']): GatewayError {
  return new GatewayError('invalid_request', {
    param,
    message: `The provider constraint is longer than ${MAX_CONSTRAINT_BYTES} bytes. Name fewer providers, lines or regions.`,
  })
}

function parseHeader(header: string | string[]): unknown {
  const text = String(header)
  if (text.length > MAX_CONSTRAINT_BYTES) throw tooLong('X-Gateway-Provider')
  try {
    return parseExactly(text)
  } catch {
    throw new GatewayError('invalid_request', {
      param: 'X-Gateway-Provider',
      message: 'The header X-Gateway-Provider must hold a JSON object.',
    })
  }
}
