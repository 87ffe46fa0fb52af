import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type Call, type CallRequest, callOf } from '../../core/call/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { CandidateTable } from '../../routing/candidates/candidate.ts'
import { type RoutingOptions, validateRouting } from '../../routing/candidates/routing-options.ts'
import { LineRegistry } from '../../routing/lines/line-state.ts'
import { newTrace, tryCandidates } from '../../routing/try-candidates.ts'
import { RoutedCall } from './routed-call.ts'

/** Options of {@link route}. */
export interface RouteOptions extends RoutingOptions {
  /** What happens to the upstream's answer when the caller leaves. Defaults to `abort`. */
  onDisconnect?: 'abort' | 'drain'
  /** How long `drain` reads on, in milliseconds. Defaults to 10000. */
  drainMs?: number
}

/**
 * Picks a line for the call, tries others while nothing was sent, and writes the answer. Needs what `readRequest`
 * wrote, and writes `call.routing` and `call.usage`.
 *
 * Where no line is left it refuses with `no_candidate`, `region_denied`, `unsupported_feature`, `context_too_long`,
 * `upstream_rate_limited` or `circuit_open`; where lines were tried, with what they came to (`upstream_timeout`,
 * `upstream_error`, `upstream_overloaded`, `empty_completion`, `content_filtered`, …) or `all_candidates_failed`. Behind the
 * first output no other line is tried: the error is told in the stream.
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
    const { model, operation, resource } = request
    const { pin } = call
    if (!pin && operation.goesOnFrom) refuseUnpinned(request)
    call.routing = newTrace(settings)
    const known = catalog(call)
    const list =
      resource && pin ? table.withLine(known, model, operation, pin.line) : table.of(known, model, operation)
    const routed = new RoutedCall(call, request, req.headers, res, settings, list.translations)
    return tryCandidates(call, list, settings, routed)
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
  const { drainMs = 10_000, onDisconnect = 'abort', lines = new LineRegistry() } = options
  const routing = validateRouting('route', options)
  if (!(drainMs > 0)) throw new TypeError('route: "drainMs" must be a positive number of milliseconds')
  if (onDisconnect !== 'abort' && onDisconnect !== 'drain') {
    throw new TypeError('route: "onDisconnect" must be "abort" or "drain"')
  }
  return { ...routing, lines, drainMs, onDisconnect }
}
