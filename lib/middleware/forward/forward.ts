import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type Call, callOf, type RoutingTrace } from '../../core/call/index.ts'
import { type Catalog, FREE, type Line, type Price, parseAmount } from '../../core/catalog/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import type { Candidate } from '../../routing/candidates/candidate.ts'
import { filterLines } from '../../routing/candidates/filters.ts'
import {
  orderCandidates,
  STRATEGIES,
  type Strategy,
  type StrategyName,
} from '../../routing/candidates/strategies.ts'
import { LineRegistry } from '../../routing/lines/line-state.ts'
import { ForwardedCall, type Forwarding } from './forwarded-call.ts'
import { relayPath } from './relay-path.ts'

/** A rule of the config's `passThrough`: where requests of a path go, and what they cost. */
export interface ForwardRule {
  /** The ids of the lines that can serve any request of the path; several only where it does not matter which. */
  lines?: readonly string[] | undefined
  /** Instead of `lines`: all lines of this model, for the keys that may use it. */
  model?: string | undefined
  /** Of each success, a decimal string. Defaults to free. */
  price?: { perRequest?: string | undefined }
}

/** Options of {@link forward}. */
export interface ForwardOptions {
  /**
   * The models and lines; a function where they can change while the app runs. One that answers the same for the same
   * call, whoever asks, lets calls that have begun finish on what they began with.
   */
  catalog: Catalog | ((call?: Call) => Catalog)
  /** Where requests go, and what they cost. */
  rule: ForwardRule
  /** The order in which lines are tried. Defaults to `priority`. */
  strategy?: StrategyName | Strategy
  /** Most lines that a connection is tried to. Defaults to 3. */
  maxAttempts?: number
  /** The region this gateway runs in, for the trace. Defaults to `local`. */
  region?: string
  /** The lines' circuits and rests; share that of `route`. Defaults to a registry of its own. */
  lines?: LineRegistry
}

/** Options of {@link forwardTo}. */
export type ForwardToOptions = Pick<ForwardOptions, 'lines' | 'region'>

/** What one request is pinned to. */
export interface ForwardTarget {
  line: Line
  /** Behind the line's base URL, with the query, such as `/videos/video_1/content`. */
  path: string
  /** Sent in place of the gateway's own of the same name. */
  headers?: Readonly<Record<string, string>>
}

/**
 * Passes a request on to one line, and its answer back, without reading either: for what is large, binary, or a
 * WebSocket. Behind `/v1` the path and the query stay as they are. Bodies go as fast as the slower side takes them, and
 * are never held. Writes `call.routing`, and for a success what it costs, so that `billingGuard` in front of it charges
 * before the head of the answer goes out.
 *
 * Refuses what cannot be passed on: an `Idempotency-Key`, because nobody reads the content that it stands for
 * (`invalid_request`), and a path
 * with dot segments, because an upstream could read another path in it (`not_found`). Where no line is left, and where one
 * fails, it refuses as `route` does.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const price = { perRequest: '0.01' }
 * app.all('/v1/audio/*rest', billingGuard({ pool, reserve: () => price.perRequest }),
 *   forward({ catalog, rule: { lines: ['openai-us'], price } }))
 */
export function forward(options: ForwardOptions): RequestHandler {
  const { strategyName, strategy, region, maxAttempts, modelId, price, candidatesOfCall } = validate(options)

  return function forward(req: Request, res: Response, next: NextFunction): void {
    const call = callOf(req)
    void held(call, () => run(call, req, res)).catch(failureTo(call, next))
  }

  async function run(call: Call, req: Request, res: Response): Promise<void> {
    const path = acceptedPath(req)
    refuseKeyed(req)
    if (modelId !== undefined) {
      call.model = modelId
      if (call.principal?.mayUseModel(modelId) === false) throw new GatewayError('model_not_allowed')
    }
    const trace: RoutingTrace = { region, strategy: strategyName, eliminated: [], attempts: [] }
    call.routing = trace
    const kept = filterLines(candidatesOfCall(call), call, trace.eliminated)
    const forwarding: Forwarding = { path, headers: {}, price, maxAttempts }
    await new ForwardedCall(call, req, res, trace, forwarding).run(orderCandidates(kept, strategy, call))
  }
}

/**
 * The same for a handler of your own that knows the line, such as where a task was made.
 *
 * @returns a function that resolves when the answer was passed on, or its caller has left, and rejects with what is to be
 *   handed to `next`.
 * @example
 * const toLine = forwardTo({ lines })
 * app.get('/v1/clips/:id', (req, res, next) => {
 *   toLine(req, res, { line: lineOf(req.params.id), path: `/clips/${req.params.id}/content` }).catch(next)
 * })
 */
export function forwardTo(
  options: ForwardToOptions = {},
): (req: Request, res: Response, target: ForwardTarget) => Promise<void> {
  const { lines = new LineRegistry(), region = 'local' } = options
  return function forwardTo(req, res, { line, path, headers = {} }) {
    const call = callOf(req)
    const trace: RoutingTrace = { region, strategy: 'pinned', eliminated: [], attempts: [] }
    call.routing ??= trace
    return held(call, async () => {
      const candidates = filterLines([candidateOf(line, lines)], call, trace.eliminated)
      const forwarding: Forwarding = { path, headers, price: null, maxAttempts: 1 }
      await new ForwardedCall(call, req, res, call.routing ?? trace, forwarding).run(candidates)
    })
  }
}

/** Keeps a call from ending while something of it goes on. */
async function held(call: Call, run: () => Promise<void>): Promise<void> {
  const release = call.hold()
  try {
    await run()
  } catch (error) {
    throw error instanceof GatewayError ? call.stamp(error) : error
  } finally {
    release()
  }
}

function failureTo(call: Call, next: NextFunction): (error: unknown) => void {
  return (error) => {
    if (!call.left) next(error)
    else if (!(error instanceof GatewayError)) {
      call.logger.error({ err: error, requestId: call.id }, 'forwarding failed')
    }
  }
}

/** TRACE would show the line's key to the caller. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD'])

function acceptedPath(req: Request): string {
  const path = METHODS.has(req.method) ? relayPath(req.originalUrl) : undefined
  if (path === undefined) throw new GatewayError('not_found')
  if (req.readableDidRead)
    throw new TypeError('forward: the body has been read already; mount forward before what reads it')
  return path
}

/** What the key stands for is not read, so that nobody could tell a repetition from another request. */
function refuseKeyed(req: Request): void {
  if (SAFE_METHODS.has(req.method) || req.headers['idempotency-key'] === undefined) return
  throw new GatewayError('invalid_request', {
    param: 'Idempotency-Key',
    message: 'This path is passed on unread and cannot be run once by key. Send it without Idempotency-Key.',
  })
}

function validate(options: ForwardOptions) {
  const { catalog: given, rule, strategy = 'priority', maxAttempts = 3, region = 'local' } = options
  if (!given) throw new TypeError('forward: "catalog" is needed; loadConfig(json).catalog is one')
  if ((rule?.lines === undefined) === (rule?.model === undefined))
    throw new TypeError('forward: "rule" needs either "lines" or "model"')
  if (typeof strategy !== 'function' && !Object.hasOwn(STRATEGIES, strategy))
    throw new TypeError(
      `forward: "strategy" must be a function or one of ${Object.keys(STRATEGIES).join(', ')}`,
    )
  if (!(Number.isInteger(maxAttempts) && maxAttempts >= 1))
    throw new TypeError('forward: "maxAttempts" must be at least 1')
  const catalog = typeof given === 'function' ? given : () => given
  const registry = options.lines ?? new LineRegistry()
  const known = new WeakMap<Catalog, readonly Candidate[]>()
  const candidatesOfCall = (call?: Call): readonly Candidate[] => {
    const current = catalog(call)
    const candidates = known.get(current) ?? candidatesOf(current, rule, registry)
    known.set(current, candidates)
    return candidates
  }
  candidatesOfCall()
  const price: Price = { ...FREE, perRequest: parseAmount(rule.price?.perRequest ?? '0') }
  return {
    strategyName: typeof strategy === 'string' ? strategy : strategy.name || 'custom',
    strategy: typeof strategy === 'string' ? STRATEGIES[strategy] : strategy,
    maxAttempts,
    region,
    modelId: rule.model,
    price,
    candidatesOfCall,
  }
}

/** By priority, then weight, then the order of the rule. */
function candidatesOf(
  catalog: Catalog,
  { lines: ids, model }: ForwardRule,
  registry: LineRegistry,
): readonly Candidate[] {
  const lines = ids
    ? ids.map((id) => {
        const line = catalog.lines.find((line) => line.id === id)
        if (!line) throw new TypeError(`forward: there is no line "${id}"`)
        return line
      })
    : catalog.linesOf(model ?? '')
  return lines
    .map((line) => candidateOf(line, registry, model))
    .sort((a, b) => a.line.priority - b.line.priority || b.line.weight - a.line.weight)
}

function candidateOf(line: Line, registry: LineRegistry, model?: string): Candidate {
  return {
    line,
    // What stands in the body stays as it is; a rule for lines names no model at all.
    upstreamModel: model === undefined ? '' : (line.models.get(model) ?? model),
    price: FREE,
    contextWindow: line.contextWindow,
    state: registry.stateOf(line),
  }
}
