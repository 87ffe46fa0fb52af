import type { Request, RequestHandler } from 'express'
import { type GatewayConfig, rateLimit, VIDEO_PATHS } from 'express-model-gateway'
import type { LimitStore } from 'express-model-gateway/rate-limit'

/** The paths where callers look up what they have, what is there, and what became of their calls. */
export const LOOKUP_PATHS = [
  '/v1/models',
  '/v1/calls',
  '/v1/usage',
  '/v1/account',
  '/v1/tickets',
  '/v1/responses',
  ...VIDEO_PATHS,
]

function isLookup({ method }: Request): boolean {
  return method === 'GET' || method === 'HEAD'
}

/** Limits the look-ups of each key. */
export function limitLookups({
  store,
  onStoreError,
  lookupsPerMinute,
}: { store: LimitStore } & Pick<GatewayConfig, 'onStoreError' | 'lookupsPerMinute'>): RequestHandler {
  const by = (req: Request, { principal }: { principal: { keyId: string } | null }) =>
    isLookup(req) ? principal?.keyId : null
  return rateLimit({ store, onStoreError, levels: [{ name: 'lookups', by, rpm: lookupsPerMinute }] })
}

/** Returns a limit of calls from which look-ups take nothing: who waits for a result may poll. */
export function unlessLookup(limit: RequestHandler): RequestHandler {
  return function unlessLookup(req, res, next) {
    if (isLookup(req)) next()
    else limit(req, res, next)
  }
}
