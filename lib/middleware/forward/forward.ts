import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type Call, callOf } from '../../core/call/index.ts'
import { type Catalog, FREE, type Line, type Price, parseAmount } from '../../core/catalog/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import type { Candidate, CandidateList } from '../../routing/candidates/candidate.ts'
import { RetryBudget } from '../../routing/candidates/retry-budget.ts'
import {
  type RoutingOptions,
  type RoutingSettings,
  validateRouting,
} from '../../routing/candidates/routing-options.ts'
import { STRATEGIES } from '../../routing/candidates/strategies.ts'
import { LineRegistry } from '../../routing/lines/line-state.ts'
import { newTrace, tryCandidates } from '../../routing/try-candidates.ts'
import { ForwardedCall } from './forwarded-call.ts'
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

/** Options of {@link forward}. Share the `lines` of `route`: their circuits and rests are the same. */
export interface ForwardOptions extends RoutingOptions {
  /** Where requests go, and what they cost. */
  rule: ForwardRule
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
  const { modelId, price, listFor, ...settings } = validate(options)

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
    call.routing = newTrace(settings)
    const forwarded = new ForwardedCall(call, req, res, { path, headers: {}, price })
    await tried(forwarded, call, listFor(call), settings)
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
  const settings = { region, strategyName: 'pinned', strategy: STRATEGIES.priority, maxAttempts: 1 }
  const budget = new RetryBudget()
  return function forwardTo(req, res, { line, path, headers = {} }) {
    const call = callOf(req)
    call.routing ??= newTrace(settings)
    const list = { candidates: [candidateOf(line, lines)], budget, translations: [] }
    return held(call, () => {
      const forwarded = new ForwardedCall(call, req, res, { path, headers, price: null })
      return tried(forwarded, call, list, settings)
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

/** Walks the candidates; whatever comes of it, nothing goes on beside the attempts. */
function tried(
  forwarded: ForwardedCall,
  call: Call,
  list: CandidateList,
  settings: RoutingSettings,
): Promise<void> {
  return tryCandidates(call, list, settings, forwarded).finally(() => forwarded.close())
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
  const { rule, lines = new LineRegistry() } = options
  const { catalog, ...settings } = validateRouting('forward', options)
  if ((rule?.lines === undefined) === (rule?.model === undefined))
    throw new TypeError('forward: "rule" needs either "lines" or "model"')
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
  const price: Price = { ...FREE, perRequest: parseAmount(rule.price?.perRequest ?? '0') }
  return { ...settings, modelId: rule.model, price, listFor }
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
    native: true,
    missing: undefined,
  }
}
