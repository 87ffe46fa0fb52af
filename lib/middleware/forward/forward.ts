import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { callOf, isRead, type OpenCall, readTags, upgradeOf } from '../../core/call/index.ts'
import type { Line } from '../../core/catalog/index.ts'
import { returnsCredentials } from '../../core/config/credential-path.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { setNoStore } from '../../core/json-api/no-store.ts'
import { constraintOf, givenConstraint } from '../../core/operations/body/provider-constraint.ts'
import { checkOptions } from '../../core/options/index.ts'
import type { CandidateList } from '../../routing/candidates/candidate.ts'
import { RetryBudget } from '../../routing/candidates/retry-budget.ts'
import { ROUTING_RULES, type RoutingSettings } from '../../routing/candidates/routing-options.ts'
import { STRATEGIES } from '../../routing/candidates/strategies.ts'
import { LineRegistry } from '../../routing/lines/line-registry.ts'
import { newTrace, tryCandidates } from '../../routing/try-candidates.ts'
import { checkBody } from './body-checks/body.ts'
import { checkQuery, modelCheck } from './body-checks/model-names.ts'
import { settleAtPrice } from './charges.ts'
import { candidateOf, type ForwardOptions, SESSION_MS, validateForward } from './forward-options.ts'
import { ForwardedCall } from './forwarded-call.ts'
import { CallAborter, type Forwarding, type ForwardTerms } from './forwarding.ts'
import { BatchLines } from './owned/batch-files.ts'
import type { OwnList } from './owned/own-list.ts'
import { OwnedRequest, type OwnedRule } from './owned/owned-request.ts'
import { addressBefore, queryOf, relayPath, takesRawBytes } from './request-path.ts'

/** A request of a rule, which has a price. */
type Asked = Omit<Forwarding, 'headers'> & { readonly terms: ForwardTerms }

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
  const { modelId, terms, sessionMs, listFor, methods, owned, bounds, raw, secrets, ...settings } =
    validateForward(options)
  let hasLogged = false

  return function forward(req: Request, res: Response, next: NextFunction): void {
    const call = callOf(req)
    void holding(call, () => run(call, req, res)).catch(failureHandler(call, next))
  }

  async function run(call: OpenCall, req: Request, res: Response): Promise<void> {
    const path = acceptedPath(req, methods)
    if (!secrets && returnsCredentials(path.replace(/\?.*/s, ''))) throw withheld(call)
    refuseKeyed(req)
    readTags(call, req.headers['x-gateway-tags'])
    const given = givenConstraint(undefined, req.headers['x-gateway-provider'])
    const constraint = given && constraintOf(given)
    if (modelId !== undefined) {
      call.model = modelId
      if (call.principal?.mayUseModel(modelId) === false) throw new GatewayError('model_not_allowed')
    }
    call.routing = newTrace(settings)
    const aborter = new CallAborter(call, sessionMs)
    try {
      await serve(call, req, res, {
        path,
        terms,
        constraint,
        aborter,
        ...(!secrets && { withhold: () => withheld(call) }),
      })
    } finally {
      aborter.close()
    }
  }

  /** Returns the refusal of what would hand out a credential of the upstream. The log says once how to permit it. */
  function withheld(call: OpenCall): GatewayError {
    if (!hasLogged) call.logger.warn({ requestId: call.id, path: call.path }, WITHHELD)
    hasLogged = true
    return new GatewayError('not_found')
  }

  /** Checks the files that a request has run, before it is passed on. */
  async function checkFiles(
    files: ReadonlySet<string>,
    call: OpenCall,
    rule: OwnedRule,
    lines: CandidateList,
    aborter: CallAborter,
  ): Promise<void> {
    const { signal } = aborter
    for (const file of files) {
      rule.refusedFiles.check(call, file)
      const refusal = await call.limits?.consumeRequests(1)
      if (refusal) throw refusal()
      const batch = new BatchLines(file, { ...rule, call, signal })
      try {
        await tryCandidates(call, lines, settings, { request: null }, (candidate) => batch.readAt(candidate))
      } finally {
        if (batch.refusal) rule.refusedFiles.add(call, file, batch.refusal)
      }
    }
    signal.throwIfAborted()
  }

  async function serve(call: OpenCall, req: Request, res: Response, asked: Asked) {
    const { all, lookUps } = listFor(call)
    const lines = isRead(req.method) && !upgradeOf(req) ? lookUps : all
    const { signal } = asked.aborter
    const leave = (): void => asked.aborter.end(new GatewayError('client_closed_request'))
    // Not every connection that ends within a body ends the request, too.
    call.onLeave(leave)
    const checkModel = modelCheck(call, lines.candidates)
    if (checkModel) checkQuery(queryOf(asked.path), checkModel)
    const takesRaw = raw ?? takesRawBytes(asked.path)
    const bodies = { ...bounds, checkModel, takesRaw, ownedOnly: owned !== undefined }
    const rule = owned && { ...owned, ...bodies, address: addressBefore(asked.path, req) }
    const ownedRequest = rule && (await OwnedRequest.check(call, req, asked.path, rule, signal))
    const unowned = !rule && checkModel ? await checkBody(call, req, bodies, signal) : undefined
    signal.throwIfAborted()
    if (rule && ownedRequest) await checkFiles(ownedRequest.filesToRun, call, rule, lookUps, asked.aborter)
    const list = ownedRequest?.listOn({ lines, settings, signal, inbound: req.headers })
    if (list) return sendList(call, res, list, asked)
    call.offLeave(leave)
    const headers = ownedRequest?.headers ?? {}
    const body = ownedRequest?.body ?? unowned
    await tryLines(call, req, res, { ...asked, headers, body, owned: ownedRequest }, lines, settings)
  }
}

/** Answers with a list. Without a line that was asked it costs nothing. */
async function sendList(call: OpenCall, res: Response, list: OwnList, { terms }: Asked): Promise<void> {
  const body = await list.body()
  const { askedLine } = list
  const outcome = { status: 200, errorCode: null, finish: 'completed' } as const
  if (askedLine !== undefined) await settleAtPrice(call, { line: askedLine, ...terms }, outcome)
  if (call.left) return
  setNoStore(res)
  res.json(body)
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
  checkOptions('forwardTo', options, { lines: ROUTING_RULES.lines, region: ROUTING_RULES.region })
  const { lines = new LineRegistry(), region = 'local' } = options
  const settings = { region, strategyName: 'pinned', strategy: STRATEGIES.priority, maxAttempts: 1 }
  const budget = new RetryBudget()
  return function forwardTo(req, res, { line, path, headers = {} }) {
    const call = callOf(req)
    call.routing ??= newTrace(settings)
    const list = { candidates: [candidateOf(line, lines)], budget }
    const aborter = new CallAborter(call, SESSION_MS)
    const forwarding = { path, headers, terms: null, aborter }
    return holding(call, () => tryLines(call, req, res, forwarding, list, settings)).finally(() =>
      aborter.close(),
    )
  }
}

/** Holds a call open until `run` has ended. */
async function holding(call: OpenCall, run: () => Promise<void>): Promise<void> {
  const release = call.hold()
  try {
    await run()
  } catch (error) {
    throw call.stamp(error)
  } finally {
    release()
  }
}

/** Passes the request on to the first line that can be connected to, and its answer back. */
async function tryLines(
  call: OpenCall,
  req: Request,
  res: Response,
  forwarding: Forwarding,
  list: CandidateList,
  settings: RoutingSettings,
): Promise<void> {
  const forwarded = new ForwardedCall(call, req, res, forwarding)
  const asked = { request: null, constraint: forwarding.constraint }
  try {
    const decided = await tryCandidates(call, list, settings, asked, (candidate, context) =>
      forwarded.attempt(candidate, context),
    )
    if (decided) forwarded.finish(decided.result)
  } finally {
    forwarded.close()
  }
}

function failureHandler(call: OpenCall, next: NextFunction): (error: unknown) => void {
  return (error) => {
    if (!call.left) next(error)
    else if (!(error instanceof GatewayError)) {
      call.logger.error({ err: error, requestId: call.id }, 'forwarding failed')
    }
  }
}

const WITHHELD =
  'forward: a request was refused whose answer is a credential of the upstream; with "secrets": true in the pass-through rule, callers get it, and reach the provider past the gateway'

function acceptedPath(req: Request, methods: ReadonlySet<string>): string {
  const path = methods.has(req.method) ? relayPath(req.originalUrl) : undefined
  if (path === undefined) throw new GatewayError('not_found')
  if (req.readableDidRead)
    throw new TypeError(
      'forward: the body has been read already; mount forward before the middleware that reads it',
    )
  if (req.readableEncoding)
    throw new TypeError(
      'forward: a middleware before it has called req.setEncoding(), so that the bytes of the body are lost; mount forward before it',
    )
  return path
}

/** Refuses an Idempotency-Key: without the body, a repetition looks like any other request. */
function refuseKeyed(req: Request): void {
  if (isRead(req.method) || req.headers['idempotency-key'] === undefined) return
  throw new GatewayError('invalid_request', {
    param: 'Idempotency-Key',
    message: 'This path is passed on unread and cannot be run once by key. Send it without Idempotency-Key.',
  })
}
