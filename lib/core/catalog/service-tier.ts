/** The names that upstreams use for the tier of their usual prices. */
const USUAL: ReadonlySet<unknown> = new Set(['default', 'standard', 'on_demand', 'auto'])

/** Whether a tier is the one that the usual prices are for. */
export function isUsualTier(tier: string): boolean {
  return USUAL.has(tier)
}

/**
 * Returns the tier that a request asks for, or that an Anthropic-style usage reports, as {@link serviceTierOf}. The
 * fast mode counts as a tier: it has other prices too.
 */
export function tierIn(members: {
  readonly speed?: unknown
  readonly service_tier?: unknown
}): string | undefined {
  return members.speed === 'fast' ? 'fast' : serviceTierOf(members.service_tier)
}

/**
 * Returns the service tier that an upstream reports, in small letters; empty for the usual one; undefined for none: `auto` asks for any.
 */
export function serviceTierOf(tier: unknown): string | undefined {
  if (typeof tier !== 'string' || !/^\w{1,32}$/.test(tier)) return undefined
  const name = tier.toLowerCase()
  if (!USUAL.has(name)) return name
  return name === 'auto' ? undefined : ''
}
