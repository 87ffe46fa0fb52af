import type { Count, Demand, Limit, Verdict } from '../../core/limit-store/index.ts'

/** The form of the limit headers: that of a provider's API, of draft-ietf-httpapi-ratelimit-headers-11, or no headers. */
export type HeaderStyle = 'openai' | 'anthropic' | 'ietf' | 'none'

/** The names of the headers of one kind of limits. */
interface Family {
  readonly limit: string
  readonly remaining: string
  readonly reset: string
}

/** How one protocol names and writes its limit headers. */
interface Format {
  readonly requests: Family
  readonly tokens: Family
  resetText(resetMs: number): string
}

const OPENAI: Format = {
  requests: {
    limit: 'x-ratelimit-limit-requests',
    remaining: 'x-ratelimit-remaining-requests',
    reset: 'x-ratelimit-reset-requests',
  },
  tokens: {
    limit: 'x-ratelimit-limit-tokens',
    remaining: 'x-ratelimit-remaining-tokens',
    reset: 'x-ratelimit-reset-tokens',
  },
  resetText: durationText,
}

const ANTHROPIC: Format = {
  requests: {
    limit: 'anthropic-ratelimit-requests-limit',
    remaining: 'anthropic-ratelimit-requests-remaining',
    reset: 'anthropic-ratelimit-requests-reset',
  },
  tokens: {
    limit: 'anthropic-ratelimit-tokens-limit',
    remaining: 'anthropic-ratelimit-tokens-remaining',
    reset: 'anthropic-ratelimit-tokens-reset',
  },
  resetText: (resetMs) => timeText(Date.now() + resetMs),
}

/** A response, or the headers of an error. */
export interface HeaderTarget {
  setHeader(name: string, value: string): unknown
}

/**
 * Sets the limit headers. In the form of a provider they describe, of several limits of a kind, the one that refused the
 * request, or else the one with the least left. In the form of the IETF they describe all.
 */
export function setLimitHeaders(
  style: HeaderStyle,
  demand: Demand,
  verdict: Verdict,
  target: HeaderTarget,
): void {
  if (style === 'none') return
  if (style === 'ietf') {
    setPolicyHeaders(demand, verdict, target)
    return
  }
  const format = style === 'anthropic' ? ANTHROPIC : OPENAI
  setFamily('rpm', format.requests, format, demand, verdict, target)
  setFamily('tpm', format.tokens, format, demand, verdict, target)
}

function setFamily(
  kind: 'rpm' | 'tpm',
  family: Family,
  format: Format,
  { charges }: Demand,
  { counts, refusedBy }: Verdict,
  target: HeaderTarget,
): void {
  let tightest: Limit | undefined
  // An integer from the start: V8 would write it by way of a floating-point number, which takes memory.
  let left = 0
  let resetMs = 0
  for (let i = 0; i < charges.length; i++) {
    const charge = charges[i] as Limit
    if (charge.kind !== kind) continue
    const count = counts[i] as Count
    if (tightest && charge !== refusedBy && charge.max - count.used >= left) continue
    tightest = charge
    left = charge.max - count.used
    resetMs = count.resetMs
    if (charge === refusedBy) break
  }
  if (!tightest) return
  target.setHeader(family.limit, String(tightest.max))
  target.setHeader(family.remaining, String(Math.max(0, Math.floor(left))))
  target.setHeader(family.reset, format.resetText(resetMs))
}

/** The texts of 0 to 60 seconds, made once. */
const SECONDS = Array.from({ length: 61 }, (_, seconds) => secondsText(seconds))

/** Returns a duration as OpenAI writes it: `250ms`, `12s`, `6m0s`. */
export function durationText(ms: number): string {
  if (ms <= 999) return `${Math.max(0, Math.ceil(ms))}ms`
  const seconds = Math.ceil(ms / 1000)
  return SECONDS[seconds] ?? secondsText(seconds)
}

function secondsText(seconds: number): string {
  if (seconds < 60) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes}m${seconds % 60}s`
  return `${Math.floor(minutes / 60)}h${minutes % 60}m${seconds % 60}s`
}

let lastSecond = 0
let lastText = ''

/** Returns a time as Anthropic writes it: RFC 3339, to the second, rounded up. */
export function timeText(time: number): string {
  const second = Math.ceil(time / 1000)
  if (second !== lastSecond) {
    lastSecond = second
    lastText = `${new Date(second * 1000).toISOString().slice(0, 19)}Z`
  }
  return lastText
}

/** Sets `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-11, with one member for each limit. */
function setPolicyHeaders({ charges, windowMs }: Demand, { counts }: Verdict, target: HeaderTarget): void {
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
    states.push(`${name};r=${wholeQuota(Math.max(0, max - used))};t=${wholeSeconds(resetMs)}`)
  }
  target.setHeader('RateLimit-Policy', policies.join(', '))
  target.setHeader('RateLimit', states.join(', '))
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
