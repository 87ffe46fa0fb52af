import { type RequestHandler, Router } from 'express'
import {
  billingGuard,
  callOf,
  forward,
  type GatewayConfig,
  type LeasePool,
  type LineRegistry,
} from 'express-model-gateway'
import type { LiveConfig } from './live-config.ts'

/** What the rules share with the rest of the gateway. */
export interface PassThroughParts {
  readonly routing: GatewayConfig['routing']
  readonly region: string
  readonly catalog: LiveConfig['catalog']
  readonly lines: LineRegistry
  readonly pool: LeasePool
  readonly limits: RequestHandler
}

/** The config's pass-through rules: limited, billed by request, and otherwise unread. */
export function passThrough(
  rules: GatewayConfig['passThrough'],
  { routing, region, catalog, lines, pool, limits }: PassThroughParts,
): Router {
  const { strategy, maxAttempts } = routing
  const router = Router()
  for (const rule of rules) {
    router.all(
      rule.path,
      // The catalogue that these rules are of, however long the limits take.
      (req, _res, next) => {
        catalog(callOf(req))
        next()
      },
      limits,
      billingGuard({ pool, reserve: () => rule.price.perRequest ?? '0' }),
      forward({ catalog, rule, lines, region, strategy, maxAttempts }),
    )
  }
  return router
}
