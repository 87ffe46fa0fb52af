import type { Count, Demand, Limit, Verdict } from './limit-store.ts'
import { type HeaderTarget, leftOf, setPolicyHeaders } from './policy-headers.ts'

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

const KINDS = ['rpm', 'tpm'] as const

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
  if (style === 'ietf') setPolicyHeaders(demand, verdict, target)
  else if (style !== 'none') setFamilies(style === 'anthropic' ? ANTHROPIC : OPENAI, demand, verdict, target)
}

function setFamilies(
  format: Format,
  { charges }: Demand,
  { counts, refusedBy }: Verdict,
  target: HeaderTarget,
): void {
  for (const kind of KINDS) {
    const tightest = tightestOf(kind, charges, counts, refusedBy)
    if (tightest < 0) continue
    const { max } = charges[tightest] as Limit
    const { used, resetMs } = counts[tightest] as Count
    const family = kind === 'rpm' ? format.requests : format.tokens
    target.setHeader(family.limit, String(max))
    target.setHeader(family.remaining, String(leftOf(max, used)))
    target.setHeader(family.reset, format.resetText(resetMs))
  }
}

function tightestOf(
  kind: 'rpm' | 'tpm',
  charges: readonly Limit[],
  counts: readonly Count[],
  refusedBy: Limit | undefined,
): number {
  let tightest = -1
  let least = Number.POSITIVE_INFINITY
  for (let i = 0; i < charges.length; i++) {
    const charge = charges[i] as Limit
    if (charge.kind !== kind) continue
    if (charge === refusedBy) return i
    const left = charge.max - (counts[i] as Count).used
    if (left < least) {
      least = left
      tightest = i
    }
  }
  return tightest
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
