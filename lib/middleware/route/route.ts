import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type Call, type CallRequest, callOf } from '../../core/call/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { aNumber, checkOptions, MAX_TIMER_MS, type OptionRules, oneOf } from '../../core/options/index.ts'
import { type CandidateList, CandidateTable } from '../../routing/candidates/candidate.ts'
import {
  ROUTING_RULES,
  type RoutingOptions,
  routingSettings,
} from '../../routing/candidates/routing-options.ts'
import { LineRegistry } from '../../routing/lines/line-registry.ts'
import { CandidateWalk, newTrace, tryCandidates } from '../../routing/try-candidates.ts'
import { answerEstimate } from './estimated-answer.ts'
import { RoutedCall } from './routed-call.ts'

/** Options of {@link route}. */
export interface RouteOptions extends RoutingOptions {
  /** What happens to the answer when the caller leaves: `abort` ends it, `drain` reads on. Defaults to `abort`. */
  onDisconnect?: 'abort' | 'drain'
  /** How long `drain` reads on, in milliseconds. Defaults to 10000. */
  drainMs?: number
}

const RULES: OptionRules<RouteOptions> = {
  ...ROUTING_RULES,
  onDisconnect: oneOf('abort', 'drain'),
  drainMs: aNumber(
    `a positive number of milliseconds, at most ${MAX_TIMER_MS} (24 days)`,
    Number.MIN_VALUE,
    MAX_TIMER_MS,
  ),
}

/**
 * Sends a call to a line and the answer to the caller, and tries other lines as long as nothing was sent. Requires
 * `readRequest` before it. Writes `call.routing`, `call.usage` and `call.servedBy`.
 *
 * If no line is left, it refuses with `no_candidate`, `region_denied`, `unsupported_feature`, `context_too_long`,
 * `upstream_rate_limited` or `circuit_open`. If lines were tried, it refuses with the outcome of the attempts
 * (`upstream_timeout`, `upstream_error`, `upstream_overloaded`, `empty_completion`, `content_filtered`, …) or
 * `all_candidates_failed`. After the first output no other line is tried, and the stream carries the error.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const { catalog } = loadConfig(config, process.env)
 * app.post('/v1/chat/completions', readRequest({ catalog }), route({ catalog, strategy: 'latency' }))
 */
export function route(options: RouteOptions): RequestHandler {
  const { catalog, lines, ...settings } = validate(options)
  const table = new CandidateTable(lines)

  return function route(req: Request, res: Response, next: NextFunction): void {
    const call = callOf(req)
    if (!call.request) {
      next(new TypeError('route: there is no call.request; mount readRequest before route'))
      return
    }
    const { request, pin } = call
    const { model, operation, resource } = request
    const routed = new RoutedCall(call, request, req.headers, res, next, settings)
    try {
      if (!pin && request.references.length > 0) refuseUnpinned(request)
      call.routing = newTrace(settings)
      const known = catalog(call)
      const list =
        resource && pin
          ? table.withLine(known, model, operation, pin.line)
          : table.of(known, model, operation)
      if (list.translations.length > 0) routed.translateBy(list.translations)
      if (operation.estimatedAnswer) void serveEstimate(call, request, routed, list, res)
      else new CandidateWalk(call, list, settings, routed, routed).next()
    } catch (error) {
      routed.failed(error)
    }
  }

  /** Serves a call that has an estimate for an answer where no line serves it. */
  async function serveEstimate(
    call: Call,
    request: CallRequest,
    routed: RoutedCall,
    list: CandidateList,
    res: Response,
  ): Promise<void> {
    try {
      await tryCandidates(call, list, settings, routed).catch((error: unknown) =>
        answerEstimate(error, call, request, res),
      )
      routed.done()
    } catch (error) {
      routed.failed(error)
    }
  }
}

/**
 * Refuses a request that names something an upstream keeps, if its line is unknown: on any line it might be another
 * account's.
 *
 * @throws {GatewayError} `unsupported_feature`.
 */
function refuseUnpinned({ references }: CallRequest): never {
  throw new GatewayError('unsupported_feature', {
    param: references[0]?.place(),
    message: 'What upstreams keep is not kept track of here. Send the content itself.',
  })
}

function validate(options: RouteOptions) {
  checkOptions('route', options, RULES)
  const { drainMs = 10_000, onDisconnect = 'abort', lines = new LineRegistry() } = options
  return { ...routingSettings(options), lines, drainMs, onDisconnect }
}
