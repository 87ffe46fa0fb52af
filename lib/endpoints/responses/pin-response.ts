import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type Call, type CallRequest, callOf, type KeptAnswer } from '../../core/call/index.ts'
import type { GatewayError } from '../../core/errors/index.ts'
import { responses } from '../../core/operations/index.ts'
import { accountOf, refuseStoreAway, requireRegistry } from './response-access.ts'
import type { ResponseRegistry } from './response-registry.ts'
import type { ResponseRecord } from './response-store.ts'

/** Options of {@link pinResponse}. */
export interface PinResponseOptions {
  /** The registry of the lines that made the responses. */
  registry: ResponseRegistry
}

/**
 * Pins a conversation to the line that has its responses. A request with a `previous_response_id` goes to the line that
 * made that response, and to no other. A response that the upstream stores is recorded before its id is sent. Refuses with
 * `not_found` if the account has no such response, and with `internal_error` while the store is away.
 *
 * Mount it behind `readRequest` and `idempotency`, and before `rateLimit` and `billingGuard`, because the conversation so
 * far counts as input of the request. Requests of other endpoints pass unchanged.
 *
 * @throws TypeError at construction without a registry.
 * @example
 * const registry = new ResponseRegistry()
 * app.post('/v1/responses', readRequest({ catalog }), pinResponse({ registry }), rateLimit(), route({ catalog }))
 */
export function pinResponse({ registry }: PinResponseOptions): RequestHandler {
  requireRegistry('pinResponse', registry)

  return function pinResponse(req: Request, _res: Response, next: NextFunction): void {
    const call = callOf(req)
    const { request } = call
    if (request?.operation !== responses) {
      next()
      return
    }
    const checking = pin(call, request)
    if (!checking) {
      next()
      return
    }
    void checking.catch((error: unknown) => refuseStoreAway(call, error)).then(next)
  }

  /** Pins the call and returns its refusal, if there is one. Returns undefined if there is nothing to wait for. */
  function pin(call: Call, request: CallRequest): Promise<GatewayError | undefined> | undefined {
    const { json } = request.body
    const previous = responses.goesOnFrom?.(json)
    // Not assigned as a literal: V8 would allocate that as an old object, which keeps the whole call alive.
    const keep = (answer: KeptAnswer): Promise<void> => record(call, request, answer)
    if (json.store !== false) call.keepAnswer = keep
    if (previous !== undefined)
      return registry.find(accountOf(call), previous).then((found) => pinTo(call, request, found))
    // Refuse now, not after a line has made a response that cannot be recorded.
    return json.store === false ? undefined : registry.ready()?.then(() => undefined)
  }

  async function record(call: Call, { model }: CallRequest, answer: KeptAnswer): Promise<void> {
    const { id, line, tokens } = answer
    const made = { account: accountOf(call), id, line, model: model.id, tokens: Math.ceil(tokens) }
    try {
      await registry.remember({ ...made, createdAt: call.startedAt })
    } catch (error) {
      throw refuseStoreAway(call, error)
    }
  }
}

/** Pins the call to the line of a record; returns the refusal if there is no record. */
function pinTo(
  call: Call,
  request: CallRequest,
  record: ResponseRecord | undefined,
): GatewayError | undefined {
  if (call.left) return call.refuse('client_closed_request')
  if (!record) {
    return call.refuse('not_found', {
      param: 'previous_response_id',
      message:
        'There is no stored response with this id, or it has expired. Send the conversation as input instead.',
    })
  }
  call.pin = { line: record.line, holds: 'the previous response' }
  const { estimatedInputTokens, windowTokens, body } = request
  call.request = {
    ...request,
    estimatedInputTokens: estimatedInputTokens + record.tokens,
    windowTokens: body.json.truncation === 'auto' ? windowTokens : windowTokens + record.tokens,
  }
  return undefined
}
