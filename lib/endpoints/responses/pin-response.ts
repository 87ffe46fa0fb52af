import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type Call, type CallRequest, callOf, type KeptAnswer } from '../../core/call/index.ts'
import type { GatewayError } from '../../core/errors/index.ts'
import { responses } from '../../core/operations/index.ts'
import { accountOf, refuseUnchecked, requireKeeper } from './refusals.ts'
import type { ResponseKeeper } from './response-keeper.ts'
import type { ResponseRecord } from './response-store.ts'

/** Options of {@link pinResponse}. */
export interface PinResponseOptions {
  /** Knows which line made which response. */
  keeper: ResponseKeeper
}

/**
 * Keeps a conversation of responses on the line that has it: a request with a `previous_response_id` goes to the line that
 * made that response and to no other, and a response that the upstream stores is noted before its id goes out. Refuses with
 * `not_found` where the account has no such response, and with `internal_error` while the store is away.
 *
 * Mount it behind `readRequest` and `idempotency`, and before `rateLimit` and `billingGuard`: what the conversation holds so
 * far is input of the request too. Requests of other endpoints pass.
 *
 * @throws TypeError at construction without a keeper.
 * @example
 * const keeper = new ResponseKeeper()
 * app.post('/v1/responses', readRequest({ catalog }), pinResponse({ keeper }), rateLimit(), route({ catalog }))
 */
export function pinResponse({ keeper }: PinResponseOptions): RequestHandler {
  requireKeeper('pinResponse', keeper)

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
    void checking.catch((error: unknown) => refuseUnchecked(call, error)).then(next)
  }

  /** What refuses the call, if anything does. Undefined: there is nothing to wait for. */
  function pin(call: Call, request: CallRequest): Promise<GatewayError | undefined> | undefined {
    const { json } = request.body
    const previous = responses.goesOnFrom?.(json)
    if (json.store !== false) call.keepAnswer = (answer) => keep(call, request, answer)
    if (previous !== undefined)
      return keeper.find(accountOf(call), previous).then((record) => follow(call, request, record))
    // Better now than when a line has made a response that nobody can note.
    return json.store === false ? undefined : keeper.ready()?.then(() => undefined)
  }

  async function keep(call: Call, { model }: CallRequest, answer: KeptAnswer): Promise<void> {
    const { id, line, tokens } = answer
    const record = { account: accountOf(call), id, line, model: model.id, tokens: Math.ceil(tokens) }
    try {
      await keeper.remember({ ...record, createdAt: call.startedAt })
    } catch (error) {
      throw refuseUnchecked(call, error)
    }
  }
}

/** Undefined: the request may go on, to the one line. */
function follow(
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
