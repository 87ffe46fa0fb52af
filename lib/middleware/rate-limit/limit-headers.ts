import type { ProtocolName } from '../../core/protocols/index.ts'
import type { Count, Demand, Limit, Verdict } from './limit-store.ts'

/** One family of limit headers. */
interface Family {
  readonly limit: string
  readonly remaining: string
  readonly reset: string
}

interface Wording {
  readonly requests: Family
  readonly tokens: Family
  resetText(resetMs: number): string
}

const family = (limit: string, remaining: string, reset: string): Family => ({ limit, remaining, reset })

const OPENAI: Wording = {
  requests: family(
    'x-ratelimit-limit-requests',
    'x-ratelimit-remaining-requests',
    'x-ratelimit-reset-requests',
  ),
  tokens: family('x-ratelimit-limit-tokens', 'x-ratelimit-remaining-tokens', 'x-ratelimit-reset-tokens'),
  resetText: durationText,
}

const ANTHROPIC: Wording = {
  requests: family(
    'anthropic-ratelimit-requests-limit',
    'anthropic-ratelimit-requests-remaining',
    'anthropic-ratelimit-requests-reset',
  ),
  tokens: family(
    'anthropic-ratelimit-tokens-limit',
    'anthropic-ratelimit-tokens-remaining',
    'anthropic-ratelimit-tokens-reset',
  ),
  resetText: (resetMs) => timeText(Date.now() + resetMs),
}

const KINDS = ['rpm', 'tpm'] as const

/** What takes headers: a response, or a collection of them. */
export interface HeaderTaker {
  setHeader(name: string, value: string): unknown
}

/**
 * Hands the limit headers to `taker`, named and worded as the protocol's own API does. Of several limits of a kind it is
 * the one that refused, else the one with the least left.
 */
export function limitHeaders(
  protocol: ProtocolName,
  { charges }: Demand,
  { counts, refusedBy }: Verdict,
  taker: HeaderTaker,
): void {
  const wording = protocol === 'anthropic' ? ANTHROPIC : OPENAI
  for (const kind of KINDS) {
    const tightest = tightestOf(kind, charges, counts, refusedBy)
    if (tightest < 0) continue
    const { most } = charges[tightest] as Limit
    const { used, resetMs } = counts[tightest] as Count
    const names = kind === 'rpm' ? wording.requests : wording.tokens
    taker.setHeader(names.limit, String(most))
    taker.setHeader(names.remaining, String(Math.max(0, Math.floor(most - used))))
    taker.setHeader(names.reset, wording.resetText(resetMs))
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
    const left = charge.most - (counts[i] as Count).used
    if (left < least) {
      least = left
      tightest = i
    }
  }
  return tightest
}

/** A duration as OpenAI writes it: `250ms`, `12s`, `6m0s`. */
export function durationText(ms: number): string {
  if (ms <= 999) return `${Math.max(0, Math.ceil(ms))}ms`
  const seconds = Math.ceil(ms / 1000)
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`
}

let lastSecond = 0
let lastText = ''

/** A time as Anthropic writes it: RFC 3339, to the second, rounded up. */
export function timeText(time: number): string {
  const second = Math.ceil(time / 1000)
  if (second !== lastSecond) {
    lastSecond = second
    lastText = `${new Date(second * 1000).toISOString().slice(0, 19)}Z`
  }
  return lastText
}
