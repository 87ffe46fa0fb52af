import type { Call } from '../../core/call/index.ts'
import type { Catalog } from '../../core/catalog/index.ts'
import {
  anObjectWith,
  aString,
  aWholeNumber,
  catalogFrom,
  neededCatalog,
  type OptionRules,
} from '../../core/options/index.ts'
import type { LineRegistry } from '../lines/line-registry.ts'
import { ownStrategy, STRATEGIES, type Strategy, type StrategyName } from './strategies.ts'

/** The options that `route`, `forward` and `LineAccess` share. */
export interface RoutingOptions {
  /**
   * The models and lines; a function if they can change while the app runs. If it returns the same catalogue for the
   * same call every time, running calls finish with the catalogue that they began with.
   */
  catalog: Catalog | ((call?: Call) => Catalog)
  /** The order in which lines are tried: a name, or a function of your own. Defaults to `priority`. */
  strategy?: StrategyName | Strategy
  /** Most lines tried for one call, of each of its models. Defaults to 3. */
  maxAttempts?: number
  /** The region this gateway runs in, for the trace. Defaults to `local`. */
  region?: string
  /** The connections, circuits and measurements. Defaults to a new registry; pass one to share, inspect or close it. */
  lines?: LineRegistry
}

export interface RoutingSettings {
  readonly strategyName: string
  readonly strategy: Strategy
  readonly maxAttempts: number
  readonly region: string
}

export const ROUTING_RULES: OptionRules<RoutingOptions> = {
  catalog: neededCatalog,
  strategy: {
    be: `a function or one of ${Object.keys(STRATEGIES).join(', ')}`,
    accepts: (value) =>
      typeof value === 'function' || (typeof value === 'string' && Object.hasOwn(STRATEGIES, value)),
  },
  maxAttempts: aWholeNumber('at least 1', 1),
  region: aString(),
  lines: anObjectWith('a LineRegistry, such as new LineRegistry()', 'stateOf'),
}

/** Fills in the defaults of the shared routing options, which have been checked. */
export function routingSettings(
  options: RoutingOptions,
): RoutingSettings & { readonly catalog: (call?: Call) => Catalog } {
  const { catalog, strategy = 'priority', maxAttempts = 3, region = 'local' } = options
  return {
    catalog: catalogFrom(catalog),
    strategyName: typeof strategy === 'string' ? strategy : strategy.name || 'custom',
    strategy: typeof strategy === 'string' ? STRATEGIES[strategy] : ownStrategy(strategy),
    maxAttempts,
    region,
  }
}
