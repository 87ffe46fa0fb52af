import { type RequestHandler, Router } from 'express'
import { billingGuard, type Call, cache, callOf, rateLimit } from 'express-model-gateway'
import type { CacheHandler } from 'express-model-gateway/cache'
import type { LoadedConfig } from 'express-model-gateway/config'
import type { Services } from './services.ts'
import type { WatchedStores } from './stores/stores.ts'

/** The options of the cache. */
export interface ModelCacheOptions
  extends Pick<WatchedStores, 'stores' | 'watches'>,
    Pick<Services, 'pool' | 'budgets'>,
    Pick<LoadedConfig, 'onStoreError'> {}

/** Returns the cache for the models that have one. */
export function modelCache({
  stores,
  watches,
  pool,
  budgets,
  onStoreError,
}: ModelCacheOptions): CacheHandler {
  const onHit = Router()
  onHit.use(countRequest({ store: stores.limits, onStoreError }))
  onHit.use(chargeHit(billingGuard({ pool, budgets, reserve: (_req, call) => hitPriceOf(call) })))
  return cache({
    ttl: (_req, { request }) => request?.model.cache?.ttlMs,
    ...(stores.cache && { store: stores.cache }),
    onHit,
    logger: stores.limitsLogger ?? stores.logger,
    onStoreChange: watches.cache.onChange,
  })
}

/** Counts an answer from the cache as a request of its key and account. It takes no tokens and no slot. */
function countRequest(options: Parameters<typeof rateLimit>[0]): RequestHandler {
  return rateLimit({
    ...options,
    skip: (_req, { principal }) => !principal?.keyLimits.rpm && !principal?.accountLimits.rpm,
    levels: [
      {
        name: 'key',
        by: (_req, { principal }) => principal?.keyId,
        rpm: (_req, { principal }) => principal?.keyLimits.rpm,
      },
      {
        name: 'account',
        by: (_req, { principal }) => principal?.accountId,
        rpm: (_req, { principal }) => principal?.accountLimits.rpm,
      },
    ],
  })
}

function hitPriceOf({ request }: Call): bigint {
  return request?.model.cache?.hitPrice ?? 0n
}

/** Charges an answer from the cache, if it has a price. */
function chargeHit(billing: RequestHandler): RequestHandler {
  return function chargeHit(req, res, next) {
    const call = callOf(req)
    const price = hitPriceOf(call)
    if (price === 0n) return next()
    return billing(req, res, (error?: unknown) => {
      if (!error) call.charge(price)
      next(error)
    })
  }
}
