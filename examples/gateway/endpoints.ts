import { type Express, type Request, type RequestHandler, Router } from 'express'
import {
  accountRoutes,
  billingGuard,
  callLogRoutes,
  callOf,
  forward,
  modelRoutes,
  rateLimit,
  ticketRoutes,
  usageRoutes,
} from 'express-model-gateway'
import { type Line, parseAmount } from 'express-model-gateway/catalog'
import type { LoadedConfig } from 'express-model-gateway/config'
import type { LimitStore } from 'express-model-gateway/rate-limit'
import type { LineView } from 'express-model-gateway/route'
import { VIDEO_PATHS } from 'express-model-gateway/video'
import { isRead } from './http-method.ts'
import type { Services } from './services.ts'
import type { Stores } from './stores/stores.ts'

/** The options of the endpoints of callers. */
export interface EndpointsOptions extends Pick<Services, 'catalog' | 'lines' | 'modelNames'> {
  readonly stores: Stores
  /** Limits tickets as calls. */
  readonly limit: RequestHandler
}

/** Mounts what callers look up about models, their calls and their account. The console shows it too. */
export function mountLookups(
  app: Express,
  { catalog, lines, modelNames, stores, limit }: EndpointsOptions,
): void {
  const lineStatus = (line: Line, view: LineView) => lines.outline(line, view)
  app.use('/v1', modelRoutes({ catalog, lineStatus, names: modelNames }))
  app.use('/v1', callLogRoutes({ store: stores.calls }))
  app.use('/v1', usageRoutes({ store: stores.usage }))
  app.use('/v1', accountRoutes({ ledger: stores.ledger }))
  app.post('/v1/tickets', limit)
  app.use('/v1', ticketRoutes({ store: stores.tickets, calls: stores.calls }))
}

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

/** Limits the look-ups of each key. */
export function limitLookups({
  store,
  onStoreError,
  lookupsPerMinute,
}: { store: LimitStore } & Pick<LoadedConfig, 'onStoreError' | 'lookupsPerMinute'>): RequestHandler {
  const by = (req: Request, { principal }: { principal: { keyId: string } | null }) =>
    isRead(req) ? principal?.keyId : null
  return rateLimit({ store, onStoreError, levels: [{ name: 'lookups', by, rpm: lookupsPerMinute }] })
}

/** Returns a limit of calls from which look-ups take nothing: a caller that waits for a result may poll. */
export function unlessLookup(limit: RequestHandler): RequestHandler {
  return function unlessLookup(req, res, next) {
    if (isRead(req)) next()
    else limit(req, res, next)
  }
}

/** The options of the rules of `passThrough`. */
export interface PassThroughOptions
  extends Pick<Services, 'catalog' | 'lines' | 'pool' | 'resources' | 'routingOptions'>,
    Partial<Pick<Services, 'budgets'>>,
    Pick<LoadedConfig, 'routing' | 'region' | 'bodyLimitBytes'>,
    Partial<Pick<LoadedConfig, 'bodyBudgetBytes'>> {
  readonly limit: RequestHandler
}

/** Returns the routes of the config's pass-through rules. Requests are limited, billed per request, and passed on unread. */
export function passThrough(rules: LoadedConfig['passThrough'], options: PassThroughOptions): Router {
  const {
    routing,
    region,
    catalog,
    lines,
    pool,
    budgets,
    limit,
    resources,
    bodyLimitBytes,
    bodyBudgetBytes,
  } = options
  const { strategy, maxAttempts } = options.routingOptions(routing)
  const router = Router()
  for (const rule of rules) {
    const { perRequest = '0', perMinute = '0' } = rule.price
    // Further minutes are held when they come.
    const most = parseAmount(perRequest) + parseAmount(perMinute)
    router.all(
      rule.path,
      // Fixes the catalogue of the call to the one of these rules, before the limits wait.
      (req, _res, next) => {
        catalog(callOf(req))
        next()
      },
      limit,
      // A free request needs no ledger.
      ...(most > 0n ? [billingGuard({ pool, ...(budgets && { budgets }), reserve: () => most })] : []),
      forward({
        catalog,
        rule,
        lines,
        region,
        strategy,
        maxAttempts,
        resources,
        bodyLimitBytes,
        bodyBudgetBytes,
      }),
    )
  }
  return router
}
