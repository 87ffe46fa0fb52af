/** What upstreams call the tier that their usual prices are for. */
const USUAL: ReadonlySet<unknown> = new Set(['default', 'standard', 'on_demand', 'auto'])

/** Whether a tier is the one that the usual prices are for. */
export function isUsualTier(tier: string): boolean {
  return USUAL.has(tier)
}

/** Returns the tier that a request asks for, or an Anthropic-style usage tells; the fast mode, which has other prices too, is one. */
export function tierIn(members: {
  readonly speed?: unknown
  readonly service_tier?: unknown
}): string | undefined {
  return members.speed === 'fast' ? 'fast' : serviceTierOf(members.service_tier)
}

/** Returns the service tier that an upstream reports; undefined for the usual one. */
export function serviceTierOf(tier: unknown): string | undefined {
  return typeof tier === 'string' && /^\w{1,32}$/.test(tier) && !USUAL.has(tier) ? tier : undefined
}
