import type { ServerResponse } from 'node:http'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type CallRequest, callOf, type OpenCall } from '../../core/call/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { aNumber, checkOptions, MAX_TIMER_MS, type OptionRules, oneOf } from '../../core/options/index.ts'
import { Untranslatable } from '../../core/translate/index.ts'
import { type AdaptedRequest, RequestAdapter } from '../../routing/attempt/adapted-request.ts'
import { type CandidateList, CandidateTable } from '../../routing/candidates/candidate.ts'
import {
  ROUTING_RULES,
  type RoutingOptions,
  routingSettings,
} from '../../routing/candidates/routing-options.ts'
import { LineRegistry } from '../../routing/lines/line-registry.ts'
import { isRefusal, type ModelChoice, newTrace } from '../../routing/try-candidates.ts'
import { tryModels } from '../../routing/try-models.ts'
import { type AnswerEnd, attemptOn, type RoutedCall } from './attempt/attempt.ts'
import { finishCall } from './attempt/finish-call.ts'

/** Options of {@link route}. */
export interface RouteOptions extends RoutingOptions {
  /** Decides about the answer when the caller leaves: `abort` ends it, `drain` reads on. Defaults to `abort`. */
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
 * Sends a call to a line and the answer to the caller, and tries other lines, then those of the fallback models, as long
 * as nothing was sent. Requires `readRequest` before it. Writes `call.routing`, `call.usage` and `call.servedBy`; if a
 * fallback model serves, also `call.model` and `call.request`.
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
  const { catalog, lines, disconnect, ...settings } = validate(options)
  const table = new CandidateTable(lines)

  return function route(req: Request, res: Response, next: NextFunction): void {
    const call = callOf(req)
    const { request } = call
    if (!request) {
      next(new TypeError('route: there is no call.request; mount readRequest before route'))
      return
    }
    call.filtersAnswer = true
    void serve({ call, request, inbound: req.headers, res, disconnect }, next)
  }

  /** Never rejects. */
  async function serve(routed: RoutedCall, next: NextFunction): Promise<void> {
    const { call, request, res } = routed
    const release = call.hold()
    let served = routed
    try {
      if (!call.pin && request.references.length > 0) refuseUnpinned(request)
      call.routing = newTrace(settings)
      const decided = await tryModels(call, request, settings, (own) => {
        served = own === request ? routed : { ...routed, request: own }
        return choiceFor(served)
      })
      if (!isRefusal(decided)) {
        if (decided) await finishCall(served, decided)
      } else if (isEstimable(decided.error, call, request)) await answerEstimate(call, request, res)
      else throw decided.error
    } catch (error) {
      refuse(call, next, error)
    } finally {
      release()
    }
  }

  function choiceFor(routed: RoutedCall): ModelChoice<AnswerEnd> {
    const { call, request } = routed
    const adapter = new RequestAdapter(request)
    let adapted: AdaptedRequest = request
    return {
      list: candidatesFor(call, request),
      asked: {
        request,
        prepare: (candidate) => {
          const made = adapter.for(candidate)
          if (made instanceof Untranslatable) return made
          adapted = made
          return undefined
        },
      },
      attempt: (candidate, context) => attemptOn(candidate, adapted, context, routed),
    }
  }

  function candidatesFor(call: OpenCall, { model, operation, resource }: CallRequest): CandidateList {
    const known = catalog(call)
    return resource && call.pin
      ? table.withLine(known, model, operation, call.pin.line)
      : table.of(known, model, operation)
  }
}

/** Passes an error on to the app. A caller who has left gets none, so only faults of the gateway are logged then. */
function refuse(call: OpenCall, next: NextFunction, error: unknown): void {
  try {
    if (!call.left) next(call.stamp(error))
    else if (!(error instanceof GatewayError)) throw error
  } catch (fault) {
    call.logger.error({ err: fault, requestId: call.id }, 'routing failed')
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
    message: 'Stored objects cannot be used here. Send the content itself.',
  })
}

function validate(options: RouteOptions) {
  checkOptions('route', options, RULES)
  const { drainMs = 10_000, onDisconnect = 'abort', lines = new LineRegistry() } = options
  return { ...routingSettings(options), lines, disconnect: { drainMs, onDisconnect } }
}

/**
 * Whether a call that no line serves can be answered with an estimate: the endpoint decided that no line is left, and not a
 * filter behind it.
 *
 * @param error why no line served the call.
 */
function isEstimable({ code }: GatewayError, { routing }: OpenCall, { operation }: CallRequest): boolean {
  if (!operation.estimatedAnswer || !routing || code !== 'no_candidate') return false
  const reasons = routing.eliminated.map(({ reason }) => reason)
  return reasons.includes('protocol') && !reasons.includes('price_ceiling')
}

/** Answers a call with the gateway's own estimate. The header `X-Gateway-Estimated` says so. */
async function answerEstimate(
  call: OpenCall,
  { operation, estimatedInputTokens }: CallRequest,
  res: ServerResponse,
): Promise<void> {
  const body = JSON.stringify(operation.estimatedAnswer?.(estimatedInputTokens))
  await call.settle({ outcome: { status: 200, errorCode: null, finish: 'completed' }, unsent: body })
  call.assertOwnsClaim()
  if (call.left) return
  res.writeHead(200, { 'content-type': 'application/json', 'x-gateway-estimated': 'true' }).end(body)
}
