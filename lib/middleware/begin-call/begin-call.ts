import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type Call, type CallOptions, openCall, quietLogger } from '../../core/call/index.ts'
import {
  aFunction,
  aLogger,
  catchRejection,
  checkedFunction,
  checkOptions,
  errorOf,
  type OptionRules,
} from '../../core/options/index.ts'
import type { Protocol } from '../../core/protocols/index.ts'

/** Options of {@link beginCall}. */
export interface BeginCallOptions extends CallOptions {
  /** Called once for each call as it begins. An error that it throws refuses the call. Defaults to nothing. */
  onBegin?: (call: Call, req: Request) => void
}

const RULES: OptionRules<BeginCallOptions> = {
  protocol: aFunction('a function of the path that returns a protocol'),
  logger: aLogger,
  onBegin: aFunction('a function of the call'),
}

const TOO_LATE =
  'beginCall: a middleware mounted before it has begun the call already, without its options; mount beginCall first'

const A_PROTOCOL = {
  be: 'a protocol, such as protocolByPath(path)',
  accepts: (value: unknown) => typeof (value as Partial<Protocol> | null)?.errorBody === 'function',
}

/**
 * Opens the {@link Call} of a request, with its id and protocol. Mount it first. Every later response carries
 * `X-Request-Id`, and the call ends exactly once, however its response ends.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * app.use(beginCall())
 */
export function beginCall(options: BeginCallOptions = {}): RequestHandler {
  checkOptions('beginCall', options, RULES)
  const { onBegin, protocol } = options
  const logger = quietLogger(options.logger)
  const opening: CallOptions = {
    logger,
    protocol: protocol && checkedFunction('beginCall: "protocol"', A_PROTOCOL, protocol),
  }
  // Without options, a call that began before is no other than one that begins here.
  let isWatched = Object.keys(options).length > 0
  return function beginCall(req: Request, res: Response, next: NextFunction): void {
    const call = openCall(req, res, opening)
    if (isWatched && call.isImplicit) {
      isWatched = false
      logger.warn({ requestId: call.id }, TOO_LATE)
    }
    let returned: unknown
    try {
      returned = onBegin?.(call, req)
    } catch (error) {
      throw errorOf('beginCall: "onBegin"', error)
    }
    // It may refuse the call at once, and not later.
    if (returned !== undefined)
      catchRejection(returned, (error) => {
        call.logger.error({ err: error, requestId: call.id }, '"onBegin" failed when the call had begun')
      })
    next()
  }
}
