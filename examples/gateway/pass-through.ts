import type { Express, RequestHandler } from 'express'
import {
  billingGuard,
  type Catalog,
  forward,
  type GatewayConfig,
  type LeasePool,
  type LineRegistry,
} from 'express-model-gateway'

/** What the rules share with the rest of the gateway. */
export interface PassThroughParts {
  readonly config: GatewayConfig
  readonly catalog: Catalog
  readonly lines: LineRegistry
  readonly pool: LeasePool
  readonly limits: RequestHandler
}

/** Mounts the config's pass-through rules: limited, billed by request, and otherwise unread. */
export function mountPassThrough(
  app: Express,
  { config, catalog, lines, pool, limits }: PassThroughParts,
): void {
  const { region, routing } = config
  for (const rule of config.passThrough) {
    app.all(
      rule.path,
      limits,
      billingGuard({ pool, reserve: () => rule.price.perRequest ?? '0' }),
      forward({ catalog, rule, lines, region, strategy: routing.strategy, maxAttempts: routing.maxAttempts }),
    )
  }
}
