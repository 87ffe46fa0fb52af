import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type Call, type CallOptions, openCall } from '../../core/call/index.ts'

/** Options of {@link beginCall}. */
export interface BeginCallOptions extends CallOptions {
  /** Runs once for each call as it begins; what it throws refuses the call. Defaults to nothing. */
  onBegin?: (call: Call, req: Request) => void
}

/**
 * First in the chain: gives the request its id and protocol and opens the {@link Call}. Every response from here on
 * carries `X-Request-Id`, and the call ends exactly once, however its response ends.
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
