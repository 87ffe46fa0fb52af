/** What upstreams call the tier that their usual prices are for. */
const USUAL: ReadonlySet<unknown> = new Set(['default', 'standard', 'on_demand', 'auto'])

/** Whether a tier is the one that the usual prices are for. */
export function isUsualTier(tier: string): boolean {
  return USUAL.has(tier)
}

/** Returns the tier that a request asks for, or an Anthropic-style usage tells, as {@link serviceTierOf}; the fast mode, which has other prices too, is one. */
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
