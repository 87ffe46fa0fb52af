import type { Call } from '../../core/call/index.ts'
import type { Catalog } from '../../core/catalog/index.ts'
import type { LineRegistry } from '../lines/line-registry.ts'
import { STRATEGIES, type Strategy, type StrategyName } from './strategies.ts'

/** The options that `route`, `forward` and `LineAccess` share. */
export interface RoutingOptions {
  /**
   * The models and lines; a function if they can change while the app runs. If it returns the same catalogue for the
   * same call every time, running calls finish with the catalogue that they began with.
   */
  catalog: Catalog | ((call?: Call) => Catalog)
  /** The order in which lines are tried: a name, or a function of your own. Defaults to `priority`. */
  strategy?: StrategyName | Strategy
  /** Most lines tried for one call. Defaults to 3. */
  maxAttempts?: number
  /** The region this gateway runs in, for the trace. Defaults to `local`. */
  region?: string
  /** The connections, circuits and measurements. Defaults to a new registry; pass one to share, inspect or close it. */
  lines?: LineRegistry
}

/** The validated options. */
export interface RoutingSettings {
  readonly strategyName: string
  readonly strategy: Strategy
  readonly maxAttempts: number
  readonly region: string
}

/** Checks the shared routing options and fills in the defaults. */
export function validateRouting(
  name: string,
  options: RoutingOptions,
): RoutingSettings & { readonly catalog: (call?: Call) => Catalog } {
  const { catalog, strategy = 'priority', maxAttempts = 3, region = 'local' } = options
  if (!catalog) throw new TypeError(`${name}: "catalog" is needed; loadConfig(json).catalog is one`)
  if (typeof strategy !== 'function' && !Object.hasOwn(STRATEGIES, strategy)) {
    throw new TypeError(
      `${name}: "strategy" must be a function or one of ${Object.keys(STRATEGIES).join(', ')}`,
    )
  }
  if (!(Number.isInteger(maxAttempts) && maxAttempts >= 1))
    throw new TypeError(`${name}: "maxAttempts" must be at least 1`)
  return {
    catalog: typeof catalog === 'function' ? catalog : () => catalog,
    strategyName: typeof strategy === 'string' ? strategy : strategy.name || 'custom',
    strategy: typeof strategy === 'string' ? STRATEGIES[strategy] : strategy,
    maxAttempts,
    region,
  }
}
