import type { ErrorRequestHandler, NextFunction, Request, RequestHandler, Response } from 'express'
import { type Call, callOf, type Logger } from '../call/index.ts'
import { type GatewayError, isUnforeseen, toGatewayError } from '../errors/index.ts'

/** Options of {@link errorEnvelope}. */
export interface ErrorEnvelopeOptions {
  /** Where unforeseen errors are logged, with their stack. Defaults to the call's logger. */
  logger?: Logger
}

/**
 * Last in the chain, and the only writer of error bodies: words any error in the envelope of the caller's protocol
 * (spec 2.1, 2.2). After the first byte there is no envelope any more: a stream ends with its protocol's error event,
 * and the connection is closed without the regular end, so that no truncated answer is taken for a whole one.
 *
 * @example
 * app.use(unknownPath(), errorEnvelope())
 */
export function errorEnvelope(options: ErrorEnvelopeOptions = {}): ErrorRequestHandler {
  return function errorEnvelope(thrown: unknown, req: Request, res: Response, _next: NextFunction): void {
    const call = callOf(req)
    const error = call.stamp(toGatewayError(thrown))
    if (isUnforeseen(error)) {
      const logger = options.logger ?? call.logger
      logger.error(
        { err: error.cause ?? error, requestId: call.id, method: call.method, path: call.path },
        'unforeseen error',
      )
    }
    call.fail(error)
    if (res.headersSent) endBroken(res, call, error)
    else sendEnvelope(req, res, call, error)
  }
}

/**
 * Turns every request that reached the end of the chain into `not_found`: unknown paths, and known ones asked with
 * another method. Mount it behind the routes and before {@link errorEnvelope}.
 */
export function unknownPath(): RequestHandler {
  return function unknownPath(req: Request, _res: Response, next: NextFunction): void {
    next(callOf(req).refuse('not_found'))
  }
}

function sendEnvelope(req: Request, res: Response, call: Call, error: GatewayError): void {
  if (res.destroyed) return
  const body = Buffer.from(JSON.stringify(call.protocol.errorBody(error, call.id)))
  for (const name of ['content-encoding', 'etag', 'last-modified', 'cache-control']) res.removeHeader(name)
  res.statusCode = error.status
  for (const [name, value] of Object.entries(error.headers)) res.setHeader(name, value)
  res.setHeader('content-type', 'application/json; charset=utf-8')
  res.setHeader('content-length', body.length)
  // What is left of an oversized or broken-off body is not worth reading.
  if (!req.complete) res.setHeader('connection', 'close')
  res.end(req.method === 'HEAD' ? undefined : body)
}

function endBroken(res: Response, call: Call, error: GatewayError): void {
  if (res.destroyed || res.writableEnded) return
  const isEventStream = String(res.getHeader('content-type') ?? '').startsWith('text/event-stream')
  if (isEventStream) res.write(call.protocol.streamError(error, call.id))
  // Not res.end(): that would write the terminating chunk and make the answer look whole.
  if (res.socket) res.socket.destroySoon()
  else res.destroy()
}
