import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type Call, callOf } from '../../core/call/index.ts'
import { type Catalog, FREE, type Line, type Price, parseAmount } from '../../core/catalog/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { KeptThings } from '../../core/kept/index.ts'
import { type Candidate, type CandidateList, RetryBudget } from '../../routing/candidates/candidate.ts'
import {
  type RoutingOptions,
  type RoutingSettings,
  validateRouting,
} from '../../routing/candidates/routing-options.ts'
import { STRATEGIES } from '../../routing/candidates/strategies.ts'
import { LineRegistry } from '../../routing/lines/line-registry.ts'
import { newTrace, tryCandidates } from '../../routing/try-candidates.ts'
import { ForwardedCall } from './forwarded-call.ts'
import { declaredCollection } from './kept/kept-resource.ts'
import { OwnedRequest } from './kept/owned-request.ts'
import { relayPath } from './relay-path.ts'

/** A rule of the config's `passThrough`: the lines that requests of a path go to, and their price. */
export interface ForwardRule {
  /** The ids of lines that can serve any request of the path. Name several only if any of them may answer. */
  lines?: readonly string[] | undefined
  /** Replaces `lines`: all lines of this model. Only keys that may use the model may call the path. */
  model?: string | undefined
  /**
   * The price of each successful answer, and of each begun minute that the answer or WebSocket takes, as decimal strings.
   * Hold at least the two for each request. Default to free.
   */
  price?: { perRequest?: string | undefined; perMinute?: string | undefined }
  /** The longest time of one answer or WebSocket, upload included, in milliseconds. Defaults to an hour. */
  sessionMs?: number | undefined
  /** The methods that are passed on; any other is `not_found`. `GET` includes `HEAD`. Defaults to all. */
  methods?: readonly ForwardMethod[] | undefined
  /** The path of the rule, as Express matches it; needed with `keeps`. */
  path?: string | undefined
  /**
   * The kind of things that the upstream keeps below the path, such as `voice`: a `POST` to the begin of the path makes
   * one, the segment behind it is the id of one, and a member `voice_id` names one. What OpenAI and Anthropic keep is
   * known without it.
   */
  keeps?: string | undefined
}

/** A method that a rule can name. */
export type ForwardMethod = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Options of {@link forward}. Pass the `lines` of `route` to share circuits and rests with it. */
export interface ForwardOptions extends RoutingOptions {
  /** The lines that requests go to, and their price. */
  rule: ForwardRule
  /**
   * Which line keeps what for whom: the same as that of `references`. Without it, ids are passed on unchecked, and all
   * callers share what the lines keep.
   */
  kept?: KeptThings
  /** The largest JSON body in bytes. With `kept`, JSON is read before it is passed on. Defaults to 20 MiB. */
  bodyLimitBytes?: number
}

/** Options of {@link forwardTo}. */
export type ForwardToOptions = Pick<ForwardOptions, 'lines' | 'region'>

/** The destination of one request. */
export interface ForwardTarget {
  line: Line
  /** The path below the line's base URL, with the query, such as `/videos/video_1/content`. */
  path: string
  /** Headers that replace those of the gateway with the same name. */
  headers?: Readonly<Record<string, string>>
}

/**
 * Passes a request on to one line, and its answer back, without reading either: for large bodies, binary ones and
 * WebSockets. The path behind `/v1` and the query stay as they are. Bodies flow at the speed of the slower side and
 * are never buffered. Writes `call.routing`, and the price of a success, which a `billingGuard` before it charges
 * before the head of the answer goes out.
 *
 * Refuses with `invalid_request` an `Idempotency-Key`, because the body is not read, and with `not_found` a path with
 * dot segments, because an upstream could resolve it to another path. If no line is left, or a line fails, it refuses
 * as `route` does.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const price = { perRequest: '0.01' }
 * app.all('/v1/audio/*rest', billingGuard({ pool, reserve: () => price.perRequest }),
 *   forward({ catalog, rule: { lines: ['openai-us'], price } }))
 */
export function forward(options: ForwardOptions): RequestHandler {
  const { modelId, price, sessionMs, listFor, methods, owned, ...settings } = validate(options)

  return function forward(req: Request, res: Response, next: NextFunction): void {
    const call = callOf(req)
    void holding(call, () => run(call, req, res)).catch(failureHandler(call, next))
  }

  async function run(call: Call, req: Request, res: Response): Promise<void> {
    const path = acceptedPath(req, methods)
    refuseKeyed(req)
    if (modelId !== undefined) {
      call.model = modelId
      if (call.principal?.mayUseModel(modelId) === false) throw new GatewayError('model_not_allowed')
    }
    call.routing = newTrace(settings)
    const ownedRequest = owned && (await OwnedRequest.judge(call, req, path, owned))
    const headers = ownedRequest?.headers ?? {}
    const forwarding = { path, headers, price, sessionMs, owned: ownedRequest }
    const forwarded = new ForwardedCall(call, req, res, forwarding)
    await tryLines(forwarded, call, listFor(call), settings)
  }
}

/**
 * Returns a function that forwards a request to a given line, for a handler that knows the line, such as the one
 * where a task was created.
 *
 * @returns a function that resolves once the answer was passed on or the caller has left, and rejects with the error
 * to pass to `next`.
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
  const settings = { region, strategyName: 'pinned', strategy: STRATEGIES.priority, maxAttempts: 1 }
  const budget = new RetryBudget()
  return function forwardTo(req, res, { line, path, headers = {} }) {
    const call = callOf(req)
    call.routing ??= newTrace(settings)
    const list = { candidates: [candidateOf(line, lines)], budget, translations: [] }
    return holding(call, () => {
      const forwarded = new ForwardedCall(call, req, res, {
        path,
        headers,
        price: null,
        sessionMs: SESSION_MS,
      })
      return tryLines(forwarded, call, list, settings)
    })
  }
}

/** Longer than a realtime session of the providers. */
const SESSION_MS = 3_600_000

/** Holds a call open until `run` has ended. */
async function holding(call: Call, run: () => Promise<void>): Promise<void> {
  const release = call.hold()
  try {
    await run()
  } catch (error) {
    throw error instanceof GatewayError ? call.stamp(error) : error
  } finally {
    release()
  }
}

/** Tries the candidates, and then ends what runs beside the attempts. */
function tryLines(
  forwarded: ForwardedCall,
  call: Call,
  list: CandidateList,
  settings: RoutingSettings,
): Promise<void> {
  return tryCandidates(call, list, settings, forwarded).finally(() => forwarded.close())
}

function failureHandler(call: Call, next: NextFunction): (error: unknown) => void {
  return (error) => {
    if (!call.left) next(error)
    else if (!(error instanceof GatewayError)) {
      call.logger.error({ err: error, requestId: call.id }, 'forwarding failed')
    }
  }
}

/** The methods that are passed on. TRACE would show the line's key to the caller. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD'])

function acceptedPath(req: Request, methods: ReadonlySet<string>): string {
  const path = methods.has(req.method) ? relayPath(req.originalUrl) : undefined
  if (path === undefined) throw new GatewayError('not_found')
  if (req.readableDidRead)
    throw new TypeError('forward: the body has been read already; mount forward before what reads it')
  return path
}

/** Refuses an Idempotency-Key: without reading the body nobody can tell a repetition from another request. */
function refuseKeyed(req: Request): void {
  if (SAFE_METHODS.has(req.method) || req.headers['idempotency-key'] === undefined) return
  throw new GatewayError('invalid_request', {
    param: 'Idempotency-Key',
    message: 'This path is passed on unread and cannot be run once by key. Send it without Idempotency-Key.',
  })
}

function validate(options: ForwardOptions) {
  const { rule, lines = new LineRegistry(), kept, bodyLimitBytes = 20 * 1024 * 1024 } = options
  const { catalog, ...settings } = validateRouting('forward', options)
  if ((rule?.lines === undefined) === (rule?.model === undefined))
    throw new TypeError('forward: "rule" needs either "lines" or "model"')
  if (kept !== undefined && !(kept instanceof KeptThings))
    throw new TypeError('forward: "kept" must be a KeptThings, such as new KeptThings()')
  if (!(bodyLimitBytes > 0))
    throw new TypeError('forward: "bodyLimitBytes" must be a positive number of bytes')
  if (rule.keeps !== undefined && rule.path === undefined)
    throw new TypeError('forward: "keeps" of the rule needs its "path"')
  const budget = new RetryBudget()
  const known = new WeakMap<Catalog, CandidateList>()
  const listFor = (call?: Call): CandidateList => {
    const current = catalog(call)
    const list = known.get(current) ?? {
      candidates: candidatesOf(current, rule, lines),
      budget,
      translations: [],
    }
    known.set(current, list)
    return list
  }
  listFor()
  const { perRequest = '0', perMinute = '0' } = rule.price ?? {}
  const price: Price = { ...FREE, perRequest: parseAmount(perRequest), perMinute: parseAmount(perMinute) }
  const { sessionMs = SESSION_MS } = rule
  if (!(sessionMs > 0 && sessionMs <= 86_400_000))
    throw new TypeError('forward: "rule.sessionMs" must be above 0 and at most a day')
  const owned = kept && { kept, bodyLimitBytes, declared: declaredCollection(rule.path, rule.keeps) }
  return { ...settings, modelId: rule.model, price, sessionMs, listFor, methods: methodsOf(rule), owned }
}

function methodsOf({ methods }: ForwardRule): ReadonlySet<string> {
  if (!methods) return METHODS
  const unknown = methods.find((method) => !METHODS.has(method))
  if (unknown !== undefined) throw new TypeError(`forward: "${unknown}" is no method that can be passed on`)
  const named = new Set<string>(methods)
  return named.has('GET') ? named.add('HEAD') : named
}

/** Returns the candidates by priority, then by weight, then in the order of the rule. */
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
  const state = registry.stateOf(line)
  return {
    line,
    // The body is not changed; a rule with `lines` names no model.
    upstreamModel: model === undefined ? '' : (line.models.get(model) ?? model),
    price: FREE,
    contextWindow: line.contextWindow,
    state,
    modelState: state.modelState(model ?? ''),
    native: true,
    missing: undefined,
  }
}
