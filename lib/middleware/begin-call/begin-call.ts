import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type Call, type CallOptions, openCall } from '../../core/call/index.ts'

/** Options of {@link beginCall}. */
export interface BeginCallOptions extends CallOptions {
  /** Called once for each call as it begins. An error that it throws refuses the call. Defaults to nothing. */
  onBegin?: (call: Call, req: Request) => void
}

/**
 * Opens the {@link Call} of a request, with its id and protocol. Mount it first. Every later response carries
 * `X-Request-Id`, and the call ends exactly once, however its response ends.
 *
 * @example
 * app.use(beginCall())
 */
export function beginCall(options: BeginCallOptions = {}): RequestHandler {
  const { onBegin } = options
  return function beginCall(req: Request, res: Response, next: NextFunction): void {
    const call = openCall(req, res, options)
    onBegin?.(call, req)
    next()
  }
}
