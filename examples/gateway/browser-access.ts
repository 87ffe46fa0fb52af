import cors from 'cors'
import type { Express, RequestHandler } from 'express'
import type { GatewayConfig } from 'express-model-gateway'
import { AZURE_ROOT } from './azure-paths.ts'

/** What a page of another origin may read of an answer, beside its body. */
const EXPOSED_HEADERS = [
  'X-Request-Id',
  'Request-Id',
  'X-Original-Request-Id',
  'X-Gateway-Dropped',
  'X-Gateway-Estimated',
  'X-Next-Cursor',
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
 * Lets pages of the listed origins call the gateway, and answers their preflights. The key goes with each request in a
 * header, so no cookies are allowed. Returns what does so for a call.
 *
 * Source: the Fetch standard, section "CORS protocol".
 */
export function mountBrowserAccess(
  app: Express,
  paths: readonly string[],
  begin: RequestHandler,
  { origins }: NonNullable<GatewayConfig['cors']>,
): RequestHandler {
  const access = cors({
    origin: origins.includes('*') ? '*' : [...origins],
    exposedHeaders: EXPOSED_HEADERS,
    maxAge: PREFLIGHT_SECONDS,
  })
  // A preflight has no key, and is answered here.
  app.options(
    paths.map((path) => `${path}/*rest`),
    begin,
    access,
  )
  app.use([...paths, AZURE_ROOT], access)
  return access
}
