import { type RequestHandler, Router } from 'express'
import {
  type Budgets,
  billingGuard,
  callOf,
  forward,
  type GatewayConfig,
  type KeptThings,
  type LeasePool,
  type LineRegistry,
} from 'express-model-gateway'
import { parseAmount } from 'express-model-gateway/catalog'
import type { LiveConfig } from './live-config.ts'

/** The parts of the gateway that the rules use. */
export interface PassThroughParts {
  readonly routing: GatewayConfig['routing']
  readonly region: string
  readonly catalog: LiveConfig['catalog']
  readonly lines: LineRegistry
  readonly pool: LeasePool
  readonly budgets?: Budgets
  readonly limits: RequestHandler
  readonly kept: KeptThings
  readonly bodyLimitBytes: number
  readonly bodyBudgetBytes?: number | undefined
}

/** Returns the routes of the config's pass-through rules. Requests are limited, billed per request, and passed on unread. */
export function passThrough(
  rules: GatewayConfig['passThrough'],
  {
    routing,
    region,
    catalog,
    lines,
    pool,
    budgets,
    limits,
    kept,
    bodyLimitBytes,
    bodyBudgetBytes,
  }: PassThroughParts,
): Router {
  const { strategy, maxAttempts } = routing
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
      limits,
      billingGuard({ pool, ...(budgets && { budgets }), reserve: () => most }),
      forward({ catalog, rule, lines, region, strategy, maxAttempts, kept, bodyLimitBytes, bodyBudgetBytes }),
    )
  }
  return router
}
