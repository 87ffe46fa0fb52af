import type { ServerResponse } from 'node:http'
import type { LimitRefusal, OpenCall } from '../../core/call/index.ts'
import type { GatewayError } from '../../core/errors/index.ts'
import { type Demand, type Limit, MAX_WAIT_MS, type Verdict } from '../../core/limit-store/index.ts'
import { type HeaderStyle, setLimitHeaders } from './limit-headers.ts'

/** Returns the error of a refused demand. It describes the limits as the headers of a success do. */
export function refuse(
  call: OpenCall,
  demand: Demand,
  verdict: Verdict & { readonly refusedBy: Limit },
  style: HeaderStyle,
): GatewayError {
  const { refusedBy, waitMs } = verdict
  const headers: Record<string, string> = {}
  const setHeader = (name: string, value: string) => {
    headers[name] = value
  }
  setLimitHeaders(style, demand, verdict, { setHeader })
  note(call, refusedBy, demand.windowMs, waitMs)
  return call.refuse(codeOf(refusedBy), { retryAfterMs: waitMs, headers })
}

const IMPOSSIBLE = {
  rpm: 'This request can never pass: the rate limit allows no requests at all. Ask for a higher limit.',
  tpm: 'This request can never pass: alone it is larger than the token rate limit allows. Shorten it, or ask for a higher limit.',
  concurrency:
    'This request can never pass: the concurrency limit allows no requests at all. Ask for a higher limit.',
} as const

/** Returns the error of a request that can never pass. Every 429 has a Retry-After, even if waiting is useless. */
export function refusePermanently(call: OpenCall, limit: Limit, { windowMs }: Demand): GatewayError {
  note(call, limit, windowMs, MAX_WAIT_MS)
  return call.refuse(codeOf(limit), {
    message: IMPOSSIBLE[limit.kind],
    retryAfterMs: MAX_WAIT_MS,
    shouldRetry: false,
  })
}

/** Sets the headers of a refusal on the response, for an error handler that knows only its status. Returns the refusal. */
export function withHeaders(refusal: GatewayError, res: ServerResponse): GatewayError {
  if (!res.headersSent)
    for (const [name, value] of Object.entries(refusal.headers)) res.setHeader(name, value)
  return refusal
}

function codeOf({ kind }: Limit): 'concurrency_limited' | 'rate_limited' {
  return kind === 'concurrency' ? 'concurrency_limited' : 'rate_limited'
}

function note(call: OpenCall, limit: Limit, windowMs: number, waitMs: number): void {
  const { level, subject, max } = limit
  const retryAfter = Math.max(1, Math.ceil(waitMs / 1000))
  call.limit = { kind: kindOf(limit, windowMs), level, subject, limit: max, retryAfter }
}

const MINUTE_MS = 60_000

/** The names that a level has for limits of windows that are not a minute. */
const PER_WINDOW = { rpm: 'requests', tpm: 'tokens', concurrency: 'concurrency' } as const

function kindOf({ kind }: Limit, windowMs: number): LimitRefusal['kind'] {
  return windowMs === MINUTE_MS ? kind : PER_WINDOW[kind]
}
