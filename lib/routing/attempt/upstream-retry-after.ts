import type { IncomingHttpHeaders } from 'node:http'
import { isJsonObject } from '../../core/json/index.ts'

/** The wait of an upstream that asks for none, for one in the past, or for something that is no time. */
const DEFAULT_WAIT_MS = 1000
/** Clients heed no longer wait, and a page about maintenance may ask for a day. */
const MAX_WAIT_MS = 60_000

/**
 * Returns how long an upstream asks to wait: `retry-after-ms`, else `retry-after` in seconds or as a date, else
 * Google's RetryInfo in the body. Undefined if it says nothing.
 */
export function retryAfterOf(headers: IncomingHttpHeaders, body: unknown): number | undefined {
  // A date is one of the upstream's clock.
  const sentAt = Date.parse(headers.date ?? '') || Date.now()
  const said = [
    millisecondsOf(headers['retry-after-ms'], 1, sentAt),
    millisecondsOf(headers['retry-after'], 1000, sentAt),
    millisecondsOf(retryInfoOf(body), 1000, sentAt),
  ].filter((ms) => ms !== undefined)
  if (said.length === 0) return undefined
  return said.find((ms) => ms > 0) ?? DEFAULT_WAIT_MS
}

/** Returns the wait that is sent to callers, for the one that an upstream asks for. */
export function cappedWait(askedMs: number | undefined): number | undefined {
  return askedMs && Math.min(askedMs, MAX_WAIT_MS)
}

/** Returns undefined if nothing is said, and 0 if it makes no sense. */
function millisecondsOf(
  said: string | readonly string[] | undefined,
  unit: number,
  sentAt: number,
): number | undefined {
  // undici gives the values of a repeated header as a list.
  const value = (typeof said === 'string' ? said : said?.[0])?.trim()
  if (value === undefined || value === '') return undefined
  const number = Number(value)
  const ms = Number.isNaN(number) ? Date.parse(value) - sentAt : number * unit
  return Math.max(0, ms) || 0
}

/** Reads `error.details[].retryDelay: "34.4s"`, as a number of seconds. */
function retryInfoOf(body: unknown): string | undefined {
  const holder = Array.isArray(body) ? body[0] : body
  const error = isJsonObject(holder) ? holder.error : undefined
  const details = isJsonObject(error) && Array.isArray(error.details) ? error.details : []
  for (const detail of details) {
    const delay = isJsonObject(detail) ? detail.retryDelay : undefined
    if (typeof delay === 'string' && /^-?\d+(?:\.\d+)?s$/.test(delay)) return delay.slice(0, -1)
  }
  return undefined
}
