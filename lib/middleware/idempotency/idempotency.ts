import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import type { ServerResponse } from 'node:http'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { callOf, holdEnd, type OpenCall } from '../../core/call/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import type { IdempotencyRecord } from '../../core/idempotency/index.ts'
import { answerRecordIn, contentOf, fingerprintOf, sendRecorded } from '../../core/repetition/index.ts'
import { AnswerBody } from './answer-body.ts'
import { AnswerTrace } from './answer-trace.ts'
import { HeldClaim } from './claim-keeper.ts'
import { KeyedCall, ReplayedCall } from './claimed-call.ts'
import { readKey, recordId } from './idempotency-key.ts'
import { type IdempotencyOptions, validate } from './idempotency-options.ts'
import { refuseFor, refuseUnchecked } from './refusals.ts'

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
  const { keeper, scope, answerLimitBytes, answers, unresolved, replay, ...settings } = validate(options)
  const keyed = { keeper, ...settings }
  let warnsOfScope = replay && options.by === undefined

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
    runOnce(call, header, req, res, next).then(
      (runs) => {
        if (runs) next()
      },
      (error: unknown) => next(call.stamp(error)),
    )
  }

  /**
   * Claims the key of a request.
   *
   * @returns whether its handler runs now; false if it has been answered, again or by an earlier middleware.
   * @throws {GatewayError} the refusal.
   */
  async function runOnce(
    call: OpenCall,
    header: string | string[],
    req: Request,
    res: Response,
    next: NextFunction,
  ): Promise<boolean> {
    const key = readKey(req, header)
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
    const ownScope = scope(req, call)
    const id = recordId(ownScope, call.method, path, key)
    const fingerprint = fingerprintOf(call.method, path, await judgedContentOf(req, call))

    if (warnsOfScope && hasIdentity(req, call)) {
      warnsOfScope = false
      settings.logger.warn({ requestId: call.id }, SHARED_SCOPE)
    }

    const claim = { id, owner: call.id, scope: ownScope }
    const claimed = await keeper.claim(claim, fingerprint).catch((error: unknown) => {
      throw refuseUnchecked(call, error)
    })
    const isClaimed = claimed instanceof HeldClaim
    if (isClaimed && (res.writableEnded || call.left)) void keeper.release(claimed)
    // An earlier middleware, such as a timeout, has answered meanwhile.
    if (res.writableEnded) return false
    if (!isClaimed) {
      trace.originalRequestId = claimed.owner
      if (replay && !res.headersSent && sendAgain(claimed, fingerprint, res)) return false
      throw (await unresolvedFor(call, claimed, fingerprint)) ?? refuseFor(call, claimed, fingerprint)
    }
    if (call.left) throw call.refuse('client_closed_request')
    const claimedCall = replay
      ? new ReplayedCall(call, trace, claimed, answerLimitBytes, res, keyed)
      : new KeyedCall(call, trace, claimed, body, res, keyed)
    claimedCall.begin()
    holdEnd(res, claimedCall, next)
    return true
  }

  /** Returns the answer that the first request got, if it was an error and its work goes on. */
  async function unresolvedFor(
    call: OpenCall,
    { owner, state, fingerprint: first }: IdempotencyRecord,
    fingerprint: string,
  ): Promise<GatewayError | undefined> {
    if (!unresolved || state !== 'running' || first !== fingerprint) return undefined
    try {
      const refusal = await unresolved(owner)
      if (refusal) refusal.headers['x-original-request-id'] = owner
      return refusal
    } catch (error) {
      settings.logger.error({ err: error, requestId: call.id }, 'idempotency: "unresolved" failed')
      return undefined
    }
  }
}

const SHARED_SCOPE =
  'idempotency: with "replay" and without "by" all callers share their keys: a caller that sends the key and content of another caller gets its answer; give "by", such as (req) => req.user.id'

/** Whether a request names its sender, and no middleware has set `call.principal`. */
function hasIdentity({ headers }: Request, call: OpenCall): boolean {
  return !call.principal && (headers.authorization !== undefined || headers.cookie !== undefined)
}

/**
 * Returns the content of a request, to compare it with that of another one.
 *
 * @throws TypeError if no parser is mounted: then a repetition cannot be distinguished from another request.
 */
async function judgedContentOf(req: Request, call: OpenCall): Promise<unknown> {
  const content = contentOf(req, call)
  if (content === 'no parser')
    throw new TypeError(
      'idempotency: the body was not read; mount the parser, such as express.json(), before idempotency',
    )
  if (content === 'not parsed')
    throw new GatewayError('invalid_request', {
      message:
        'The body was not read, so its Idempotency-Key cannot be judged. Send it as JSON, with "Content-Type: application/json".',
    })
  if (content.files.length === 0) return content.value
  return [content.value, await Promise.all(content.files.map(digestOfFile))]
}

/** Returns the hash of a file; null if there is none at the path, which then belongs to another storage. */
async function digestOfFile(path: string): Promise<string | null> {
  const hash = createHash('sha256')
  try {
    for await (const piece of createReadStream(path)) hash.update(piece as Buffer)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  return hash.digest('base64url')
}

/**
 * Answers a repetition as the first request was answered.
 *
 * @returns whether it did: not if the first is still running, had other content, or its answer was not kept or cannot be read.
 */
export function sendAgain(record: IdempotencyRecord, fingerprint: string, res: ServerResponse): boolean {
  const { state, answer, owner } = record
  if (state !== 'completed' || record.fingerprint !== fingerprint || answer === undefined) return false
  const kept = answerRecordIn(answer)
  if (!kept) return false
  sendRecorded(kept, res, { 'idempotent-replayed': 'true', 'x-original-request-id': owner })
  return true
}
