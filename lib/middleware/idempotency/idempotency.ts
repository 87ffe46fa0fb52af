import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type Call, callOf, consoleLogger, holdEnd, type Logger } from '../../core/call/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { StoreGuard } from '../../core/store-guard/index.ts'
import { AnswerBody } from './answer-body.ts'
import { AnswerQueue } from './answer-queue.ts'
import type { AnswerStore } from './answer-store.ts'
import { AnswerTrace } from './answer-trace.ts'
import { ClaimKeeper } from './claim-keeper.ts'
import { fingerprintOf } from './fingerprint.ts'
import { HeldClaim } from './held-claim.ts'
import { readKey, recordId } from './idempotency-key.ts'
import type { IdempotencyStore } from './idempotency-store.ts'
import { KeyedCall } from './keyed-call.ts'
import { MemoryIdempotencyStore } from './memory-idempotency-store.ts'
import { refuseFor, refuseUnchecked } from './refusals.ts'

/** Options of {@link idempotency}. Times are milliseconds. */
export interface IdempotencyOptions {
  /** Keeps the records of keys. Defaults to a {@link MemoryIdempotencyStore}. */
  store?: IdempotencyStore
  /**
   * Returns the scope of a request's key: the same key in two scopes is two keys. Defaults to the account that
   * `authenticate` found, and without one to a single scope for all callers.
   */
  scope?: (req: Request) => string
  /** How long a finished request keeps its key. Defaults to 24 hours. */
  keepMs?: number
  /**
   * How long a key stays taken after its process has died, at least 400. The lease is renewed every quarter of that time, and
   * a call goes on only while its last renewal is younger than three quarters of it. Defaults to 60000.
   */
  leaseMs?: number
  /** The largest answer to keep for the call log, in bytes. A longer one is cut and marked so. Defaults to 8 MiB. */
  answerLimitBytes?: number
  /**
   * Keeps answers of more than 4 KiB, each by itself and before the charge whose entry points at it, so that a large one
   * holds up no other call. The store of the call log must read them: `SqlAnswerStore` goes with `SqlCallStore`. Defaults
   * to none: each answer is in its entry.
   */
  answers?: AnswerStore
  /** How long your own handler keeps the key if its caller leaves before it has answered. Defaults to 5 minutes. */
  handlerMs?: number
  /**
   * Where the record of a call is completed: by this middleware in its `store`, or by a `ledger` in the transaction
   * of its charge, which then sets `call.idempotency.claim.state`. Defaults to `store`.
   */
  completedBy?: 'store' | 'ledger'
  /** How long the store may take to answer before it counts as away. Defaults to 250. */
  storeTimeoutMs?: number
  /** Runs when an outage of the store begins and ends, for metrics. */
  onStoreChange?: (away: boolean) => void
  /** Receives outages and lost claims. Defaults to the console. */
  logger?: Logger
}

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
  const { keeper, scope, answerLimitBytes, answers, ...settings } = validate(options)
  const keyed = { keeper, ...settings }

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

    const begin = (claimed: Awaited<ReturnType<ClaimKeeper['claim']>>): GatewayError | 'over' | undefined => {
      if (!(claimed instanceof HeldClaim)) {
        trace.originalRequestId = claimed.owner
        return refuseFor(call, claimed, fingerprint)
      }
      if (call.left) {
        void keeper.release(claimed)
        return call.refuse('client_closed_request')
      }
      if (res.writableEnded) {
        void keeper.release(claimed)
        return 'over'
      }
      const keyedCall = new KeyedCall(call, trace, claimed, body, res, keyed)
      keyedCall.begin()
      holdEnd(res, keyedCall, next)
      return undefined
    }
    void keeper
      .claim({ id, owner: call.id }, fingerprint)
      .then(begin, (error: unknown) => refuseUnchecked(call, error))
      .then((refusal) => {
        // An earlier middleware, such as a timeout, has answered. Later handlers would run without a claim.
        if (refusal !== 'over') next(refusal)
      })
  }
}

/** Returns the JSON value of the request's body. */
function contentOf(req: Request, call: Call): unknown {
  if (call.request) return call.request.body.json
  if (req.body !== undefined) return req.body
  const { 'content-length': length = '0', 'transfer-encoding': coding } = req.headers
  if (coding === undefined && length === '0') return undefined
  throw new GatewayError('invalid_request', {
    message:
      'The body was not read, so its Idempotency-Key cannot be judged. Send it as JSON, with "Content-Type: application/json".',
  })
}

function validate(options: IdempotencyOptions) {
  const { store = new MemoryIdempotencyStore(), logger = consoleLogger, completedBy = 'store' } = options
  const { leaseMs = 60_000, keepMs = 86_400_000, handlerMs = 300_000, storeTimeoutMs = 250 } = options
  const { answerLimitBytes = 8 * 1024 * 1024, onStoreChange } = options
  if (typeof store?.claim !== 'function') {
    throw new TypeError(
      'idempotency: "store" must be an IdempotencyStore, such as new MemoryIdempotencyStore()',
    )
  }
  if (options.scope !== undefined && typeof options.scope !== 'function')
    throw new TypeError('idempotency: "scope" must be a function of the request that answers a string')
  if (!(leaseMs >= 400)) throw new TypeError('idempotency: "leaseMs" must be at least 400 milliseconds')
  for (const [name, ms] of Object.entries({ leaseMs, keepMs, handlerMs, storeTimeoutMs })) {
    if (!(Number.isSafeInteger(ms) && ms > 0))
      throw new TypeError(`idempotency: "${name}" must be a positive whole number of milliseconds`)
  }
  if (!(answerLimitBytes >= 0))
    throw new TypeError('idempotency: "answerLimitBytes" must be a number of bytes')
  if (options.answers !== undefined && typeof options.answers.write !== 'function')
    throw new TypeError('idempotency: "answers" must be an AnswerStore, such as new SqlAnswerStore(db)')
  if (completedBy !== 'store' && completedBy !== 'ledger')
    throw new TypeError('idempotency: "completedBy" must be "store" or "ledger"')
  const guard = new StoreGuard({
    name: 'idempotency',
    logger,
    timeoutMs: storeTimeoutMs,
    ...(onStoreChange && { onChange: onStoreChange }),
  })
  return {
    keeper: new ClaimKeeper({ store, guard, logger, leaseMs, keepMs }),
    scope: options.scope ?? accountOf,
    completesHere: completedBy === 'store',
    answerLimitBytes,
    answers: options.answers && new AnswerQueue(options.answers, logger),
    handlerMs,
  }
}

/** Returns the account as the scope. Without accounts all share one: keys are random, and addresses change. */
function accountOf(_req: Request, call: Call): string {
  return call.principal?.accountId ?? ''
}
