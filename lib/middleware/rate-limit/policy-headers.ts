import type { Count, Demand, Limit, Verdict } from './limit-store.ts'

/** A response, or the headers of an error. */
export interface HeaderTarget {
  setHeader(name: string, value: string): unknown
}

/** Sets `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11, with one member for each limit. */
export function setPolicyHeaders(
  { charges, windowMs }: Demand,
  { counts }: Verdict,
  target: HeaderTarget,
): void {
  if (charges.length === 0) return
  const window = wholeSeconds(windowMs)
  const policies: string[] = []
  const states: string[] = []
  for (let i = 0; i < charges.length; i++) {
    const { kind, level, max } = charges[i] as Limit
    const { used, resetMs } = counts[i] as Count
    const name = kind === 'rpm' ? quoted(level) : quoted(`${level}-tokens`)
    const unit = kind === 'rpm' ? '' : ';qu="tokens"'
    policies.push(`${name};q=${wholeQuota(max)}${unit};w=${window}`)
    states.push(`${name};r=${wholeQuota(leftOf(max, used))};t=${wholeSeconds(resetMs)}`)
  }
  target.setHeader('RateLimit-Policy', policies.join(', '))
  target.setHeader('RateLimit', states.join(', '))
}

export function leftOf(max: number, used: number): number {
  return Math.max(0, Math.floor(max - used))
}

/** The largest integer of a structured field. */
const MAX_INTEGER = 999_999_999_999_999

function wholeQuota(max: number): number {
  return Math.min(Math.floor(max), MAX_INTEGER)
}

/** Rounds up, so that a caller never comes too early. */
function wholeSeconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000))
}

/** Returns a string of a structured field. */
function quoted(name: string): string {
  return `"${name.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')}"`
}
