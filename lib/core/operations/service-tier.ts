/** What upstreams call the tier that their usual prices are for. */
const USUAL: ReadonlySet<unknown> = new Set(['default', 'standard', 'on_demand', 'auto'])

/** Returns the service tier that an upstream reports; undefined for the usual one. */
export function serviceTierOf(tier: unknown): string | undefined {
  return typeof tier === 'string' && /^\w{1,32}$/.test(tier) && !USUAL.has(tier) ? tier : undefined
}
