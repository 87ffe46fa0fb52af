import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type Call, callOf, holdEnd } from '../../core/call/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { AnswerBody } from './answer-body.ts'
import { AnswerTrace } from './answer-trace.ts'
import type { ClaimKeeper } from './claim-keeper.ts'
import { fingerprintOf } from './fingerprint.ts'
import { HeldClaim } from './held-claim.ts'
import { readKey, recordId } from './idempotency-key.ts'
import { type IdempotencyOptions, validate } from './idempotency-options.ts'
import { KeyedCall } from './keyed-call.ts'
import { sendAgain } from './recorded-answer.ts'
import { refuseFor, refuseUnchecked } from './refusals.ts'
import { ReplayedCall } from './replayed-call.ts'
import { uploadsOf } from './uploads.ts'

/** The middleware that {@link idempotency} returns. */
export interface IdempotencyHandler extends RequestHandler {
  /**
   * Waits until the store has confirmed the outcome of every key, and logs the keys that it has not. Call it after
   * the last call and before the store is closed. Never rejects.
   *
   * @param withinMs how long it may take, in milliseconds. Defaults to 3000.
   */
  close(withinMs?: number): Promise<void>
}

/** Methods that change nothing, so that they need no key. */
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])

/**
 * Runs a request with an `Idempotency-Key` once. Refuses a second one with the same key: with
 * `idempotency_key_in_use` while the first runs, with `idempotency_key_replayed` once that has produced output, and
 * with `idempotency_key_reused` if its content differs. A request that was refused, or failed without output, frees
 * its key. While the store is away, a request with a key is refused with `internal_error`.
 *
 * Mount it after the middleware that reads the body: `readRequest`, or a parser such as `express.json()`. A request
 * without the header never uses the store.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * app.post('/orders', express.json(), idempotency(), (req, res) => res.status(201).json(placeOrder(req.body)))
 */
export function idempotency(options: IdempotencyOptions = {}): IdempotencyHandler {
  const { keeper, scope, answerLimitBytes, answers, replay, ...settings } = validate(options)
  const keyed = { keeper, ...settings }
  let warnsOfScope = replay && options.scope === undefined

  return Object.assign(idempotency, { close: (withinMs = 3000) => keeper.close(withinMs) })

  function idempotency(req: Request, res: Response, next: NextFunction): void {
    const header = req.headers['idempotency-key']
    if (header === undefined || SAFE_METHODS.has(req.method)) {
      next()
      return
    }
    const call = callOf(req)
    if (call.idempotency) {
      next()
      return
    }
    try {
      run(call, readKey(req, header), req, res, next)
    } catch (error) {
      next(error instanceof GatewayError ? call.stamp(error) : error)
    }
  }

  function run(call: Call, key: string, req: Request, res: Response, next: NextFunction): void {
    const body = new AnswerBody(answerLimitBytes)
    const trace = new AnswerTrace(key, {
      requestId: call.id,
      account: call.principal?.accountId ?? '',
      body,
      answers,
      completedByLedger: !settings.completesHere,
    })
    call.idempotency = trace
    // An app may accept other spellings of an endpoint's path, such as one with a slash at its end.
    const path = call.request?.operation.path ?? call.path
    const id = recordId(scope(req, call), call.method, path, key)
    const fingerprint = fingerprintOf(call.method, path, contentOf(req, call))

    if (warnsOfScope && isSomebody(req, call)) {
      warnsOfScope = false
      settings.logger.warn({ requestId: call.id }, SHARED_SCOPE)
    }

    const begin = (claimed: Awaited<ReturnType<ClaimKeeper['claim']>>): GatewayError | 'over' | undefined => {
      if (res.writableEnded) {
        if (claimed instanceof HeldClaim) void keeper.release(claimed)
        return 'over'
      }
      if (!(claimed instanceof HeldClaim)) {
        trace.originalRequestId = claimed.owner
        if (replay && !res.headersSent && sendAgain(claimed, fingerprint, res)) return 'over'
        return refuseFor(call, claimed, fingerprint)
      }
      if (call.left) {
        void keeper.release(claimed)
        return call.refuse('client_closed_request')
      }
      const keyedCall = replay
        ? new ReplayedCall(call, trace, claimed, answerLimitBytes, res, keyed)
        : new KeyedCall(call, trace, claimed, body, res, keyed)
      keyedCall.begin()
      holdEnd(res, keyedCall, next)
      return undefined
    }
    void keeper
      .claim({ id, owner: call.id }, fingerprint)
      .then(begin, (error: unknown) => refuseUnchecked(call, error))
      .then((refusal) => {
        // The answer has been given: again, or by an earlier middleware, such as a timeout.
        if (refusal !== 'over') next(refusal)
      }, next)
  }
}

/**
 * Returns the value of the request's body.
 *
 * @throws TypeError if no parser is mounted: then nobody can tell a repetition from another request.
 */
function contentOf(req: Request, call: Call): unknown {
  if (call.request) return call.request.body.json
  const uploads = uploadsOf(req)
  if (uploads) return { body: req.body, uploads }
  if (req.body !== undefined) return req.body
  const { 'content-length': length = '0', 'transfer-encoding': coding } = req.headers
  if (coding === undefined && length === '0') return undefined
  // A parser of Express leaves the property behind also where the type of the body is not its own.
  if (!('body' in req))
    throw new TypeError(
      'idempotency: the body was not read; mount the parser, such as express.json(), before idempotency',
    )
  throw new GatewayError('invalid_request', {
    message:
      'The body was not read, so its Idempotency-Key cannot be judged. Send it as JSON, with "Content-Type: application/json".',
  })
}

const SHARED_SCOPE =
  'idempotency: with "replay" and without "scope" all callers share their keys: whoever sends the key and the content of another gets the answer of the other; give "scope", such as (req) => req.user.id'

/** Whether a request says who sends it, and nobody has told us. */
function isSomebody({ headers }: Request, call: Call): boolean {
  return !call.principal && (headers.authorization !== undefined || headers.cookie !== undefined)
}
