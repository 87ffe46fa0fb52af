import cors from 'cors'
import type { RequestHandler } from 'express'
import type { LoadedConfig } from 'express-model-gateway/config'

/** The headers of an answer that a page of another origin may read. */
const EXPOSED_HEADERS = [
  'X-Request-Id',
  'Request-Id',
  'X-Original-Request-Id',
  'X-Gateway-Cache',
  'X-Gateway-Dropped',
  'X-Gateway-Estimated',
  'X-Next-Cursor',
  'Location',
  'X-Should-Retry',
  'Retry-After',
  'Retry-After-Ms',
  ...['Limit', 'Remaining', 'Reset'].flatMap((figure) =>
    ['Requests', 'Tokens'].flatMap((unit) => [
      `X-RateLimit-${figure}-${unit}`,
      `Anthropic-RateLimit-${unit}-${figure}`,
    ]),
  ),
]

/** How long a browser may keep the answer to a preflight, in seconds. Chromium keeps it no longer. */
const PREFLIGHT_SECONDS = 7200

/**
 * Lets pages of the listed origins call the gateway, and answers their preflights, which have no key. The key goes with each
 * request in a header, so no cookies are allowed.
 *
 * Source: the Fetch standard, section "CORS protocol".
 */
export function browserAccess({ origins }: NonNullable<LoadedConfig['cors']>): RequestHandler {
  return cors({
    origin: origins.includes('*') ? '*' : [...origins],
    exposedHeaders: EXPOSED_HEADERS,
    maxAge: PREFLIGHT_SECONDS,
  })
}
