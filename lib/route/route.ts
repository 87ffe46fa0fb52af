import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type Call, type CallRequest, callOf } from '../call/index.ts'
import type { Catalog } from '../catalog/index.ts'
import { GatewayError } from '../errors/index.ts'
import { CandidateTable } from './candidate.ts'
import { filterCandidates } from './filters.ts'
import { LineRegistry } from './line-state.ts'
import { RetryBudget } from './retry-budget.ts'
import { RoutedCall } from './routed-call.ts'
import { orderCandidates, STRATEGIES, type Strategy, type StrategyName } from './strategies.ts'

/** Options of {@link route}. */
export interface RouteOptions {
  /** The models and lines; a function where they can change while the app runs. */
  catalog: Catalog | (() => Catalog)
  /** The order in which lines are tried: a name, or a function of your own. Defaults to `priority`. */
  strategy?: StrategyName | Strategy
  /** Most lines tried for one call. Defaults to 3. */
  maxAttempts?: number
  /** What happens to the upstream's answer when the caller leaves. Defaults to `abort`. */
  onDisconnect?: 'abort' | 'drain'
  /** How long `drain` reads on, in milliseconds. Defaults to 10000. */
  drainMs?: number
  /** The region this gateway runs in, for the trace. Defaults to `local`. */
  region?: string
  /** The lines' connections, circuits and measurements. Defaults to a registry of its own; pass one to see or close it. */
  lines?: LineRegistry
}

/**
 * Picks a line for the call, tries others while nothing was sent, and writes the answer (spec 7.2, "routing and
 * upstream"). Needs what `readRequest` wrote, and writes `call.routing` and `call.usage`.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const { catalog } = loadConfig(config, process.env)
 * app.post('/v1/chat/completions', readRequest({ catalog }), route({ catalog, strategy: 'latency' }))
 */
export function route(options: RouteOptions): RequestHandler {
  const { catalog, strategyName, strategy, lines, ...settings } = validate(options)
  const table = new CandidateTable(lines)
  const budgets = new Map<string, RetryBudget>()

  return function route(req: Request, res: Response, next: NextFunction): void {
    const call = callOf(req)
    if (!call.request) {
      next(new TypeError('route: there is no call.request; mount readRequest before route'))
      return
    }
    const release = call.hold()
    const fail = (error: unknown): void => {
      if (!call.left) next(error instanceof GatewayError ? call.stamp(error) : error)
      else if (!(error instanceof GatewayError)) {
        call.logger.error({ err: error, requestId: call.id }, 'routing failed')
      }
      release()
    }
    try {
      serve(call, call.request, req, res).then(release, fail)
    } catch (error) {
      fail(error)
    }
  }

  function serve(call: Call, request: CallRequest, req: Request, res: Response): Promise<void> {
    const { model } = request
    const { principal, pin } = call
    if (!pin) refuseUnpinned(request)
    call.routing = { region: settings.region, strategy: strategyName, eliminated: [], attempts: [] }
    const { protocol } = request.operation
    const candidates =
      request.resource && pin
        ? table.withLine(catalog(), model, protocol, pin.line)
        : table.of(catalog(), model, protocol)
    const kept = filterCandidates(candidates, { request, principal, pin }, call.routing.eliminated)
    const budget = budgetOf(model.id)
    budget.noteCall()
    const ordered = orderCandidates(kept, strategy, call)
    return new RoutedCall(call, req.headers, res, settings, budget).run(ordered, candidates)
  }

  function budgetOf(modelId: string): RetryBudget {
    const known = budgets.get(modelId)
    if (known) return known
    const budget = new RetryBudget()
    budgets.set(modelId, budget)
    return budget
  }
}

/**
 * Sent to whichever line comes first, it would go on from what another account's call left there.
 *
 * @throws {GatewayError} `unsupported_feature` for a request that goes on from an answer, where nobody knows its line.
 */
function refuseUnpinned({ operation, body }: CallRequest): void {
  if (operation.goesOnFrom?.(body.json) === undefined) return
  throw new GatewayError('unsupported_feature', {
    param: 'previous_response_id',
    message: 'Stored responses are not kept track of here. Send the whole conversation as input.',
  })
}

function validate(options: RouteOptions) {
  const {
    catalog,
    strategy = 'priority',
    maxAttempts = 3,
    drainMs = 10_000,
    onDisconnect = 'abort',
  } = options
  if (!catalog) throw new TypeError('route: "catalog" is needed; loadConfig(json).catalog is one')
  if (typeof strategy !== 'function' && !Object.hasOwn(STRATEGIES, strategy)) {
    throw new TypeError(
      `route: "strategy" must be a function or one of ${Object.keys(STRATEGIES).join(', ')}`,
    )
  }
  if (!(Number.isInteger(maxAttempts) && maxAttempts >= 1))
    throw new TypeError('route: "maxAttempts" must be at least 1')
  if (!(drainMs > 0)) throw new TypeError('route: "drainMs" must be a positive number of milliseconds')
  if (onDisconnect !== 'abort' && onDisconnect !== 'drain') {
    throw new TypeError('route: "onDisconnect" must be "abort" or "drain"')
  }
  return {
    catalog: typeof catalog === 'function' ? catalog : () => catalog,
    strategyName: typeof strategy === 'string' ? strategy : strategy.name || 'custom',
    strategy: typeof strategy === 'string' ? STRATEGIES[strategy] : strategy,
    lines: options.lines ?? new LineRegistry(),
    region: options.region ?? 'local',
    maxAttempts,
    drainMs,
    onDisconnect,
  }
}
