import { formatAmount, isAmount } from 'express-model-gateway/catalog'
import type { Members } from './members.ts'

/** Prices as the config has them, decimal strings by name. */
export type Prices = Readonly<Record<string, string | readonly Tier[]>>

type Tier = Readonly<Record<string, string | number>>

interface Rule {
  readonly price: string
  /** The power of ten between LiteLLM's unit and this gateway's. */
  readonly shift: number
  /** The kind of model for which LiteLLM means this price; all without it. */
  readonly kind?: string
}

const RULES: Readonly<Record<string, Rule>> = {
  input_cost_per_token: { price: 'inputPerMillion', shift: 6 },
  output_cost_per_token: { price: 'outputPerMillion', shift: 6 },
  cache_read_input_token_cost: { price: 'cachedInputPerMillion', shift: 6 },
  cache_creation_input_token_cost: { price: 'cacheWritePerMillion', shift: 6 },
  cache_creation_input_token_cost_above_1hr: { price: 'cacheWrite1hPerMillion', shift: 6 },
  input_cost_per_audio_token: { price: 'audioInputPerMillion', shift: 6 },
  output_cost_per_audio_token: { price: 'audioOutputPerMillion', shift: 6 },
  input_cost_per_request: { price: 'perRequest', shift: 0 },
  input_cost_per_query: { price: 'perSearchUnit', shift: 0, kind: 'rerank' },
  output_cost_per_image: { price: 'perImage', shift: 0, kind: 'image' },
  output_cost_per_second: { price: 'perSecond', shift: 0, kind: 'video' },
  output_cost_per_video_per_second: { price: 'perSecond', shift: 0, kind: 'video' },
}

/** Reads the prices of a deployment. LiteLLM has them in `litellm_params`, which count first, and in `model_info`. */
export function readPrices(params: Members, info: Members, kind: string): Prices {
  const prices: Record<string, string> = {}
  const tiers = new Map<string, Record<string, string | number>>()
  // In one order, however the file has it: deployments are compared.
  for (const name of new Set([...Object.keys(RULES), ...[...params.names, ...info.names].sort()])) {
    const [, base = name, count, thousands, serviceTier] = TIERED.exec(name) ?? []
    const rule = Object.hasOwn(RULES, base) ? RULES[base] : undefined
    if (!rule || (rule.kind !== undefined && rule.kind !== kind)) continue
    for (const members of [params, info]) {
      const price = readPrice(members, name, rule)
      if (price === undefined) continue
      if (count === undefined && serviceTier === undefined) prices[rule.price] ??= price
      else {
        const above = Number(count ?? 0) * (thousands ? 1000 : 1)
        const place = `${above} ${serviceTier}`
        const tier = tiers.get(place) ?? {
          ...(above > 0 && { aboveInputTokens: above }),
          ...(serviceTier && { serviceTier }),
        }
        tiers.set(place, tier)
        tier[rule.price] ??= price
      }
    }
  }
  const perWebSearch = readSearchPrice(params) ?? readSearchPrice(info)
  if (perWebSearch !== undefined) prices.perWebSearch = perWebSearch
  return { ...prices, ...(tiers.size > 0 && { tiers: [...tiers.values()] }) }
}

/** A price for calls with more input, or in a tier of service: `input_cost_per_token_above_200k_tokens`, `input_cost_per_token_priority`. */
const TIERED = /^(\w+?)(?:_above_([1-9]\d{0,8})(k?)_tokens)?(?:_(priority|flex))?$/

/** Reads the price of a web search. LiteLLM has one for each size of its context; the gateway has the dearest. */
function readSearchPrice(members: Members): string | undefined {
  const name = 'search_context_cost_per_query'
  const sizes = Object.values(members.mapping(name) ?? {}).map(Number)
  if (sizes.length === 0) return undefined
  const dearest = Math.max(...sizes)
  const price = dearest >= 0 ? shifted(dearest, 0) : undefined
  if (price === undefined) members.note(name, 'has no prices; left out')
  else if (sizes.some((size) => size !== dearest))
    members.note(name, `has several prices; every web search costs ${price.text}`)
  return price?.text
}

function readPrice(members: Members, name: string, { shift }: Rule): string | undefined {
  const cost = members.number(name)
  if (cost === undefined) return undefined
  const price = shifted(cost, shift)
  if (price === undefined) members.note(name, 'is more than a price can be; left out')
  else if (price.isRounded) members.note(name, 'has more than 9 decimal places here; rounded up')
  return price?.text
}

/**
 * Multiplies a number with a power of ten exactly, as a decimal string of at most 9 places; undefined if it is more than a config
 * takes. The digits are the shortest that stand for the number, which are those of the file.
 */
export function shifted(value: number, shift: number): { text: string; isRounded: boolean } | undefined {
  const [digits = '', exponent = '0'] = String(value).split('e')
  const [whole = '', fraction = ''] = digits.split('.')
  const places = Number(exponent) + shift - fraction.length + 9
  let nanos = BigInt(whole + fraction)
  let isRounded = false
  if (places >= 0) nanos *= 10n ** BigInt(places)
  else {
    const unit = 10n ** BigInt(-places)
    isRounded = nanos % unit !== 0n
    nanos = nanos / unit + (isRounded ? 1n : 0n)
  }
  const text = formatAmount(nanos)
  return isAmount(text) && Number(text) < 9_223_372_036 ? { text, isRounded } : undefined
}
