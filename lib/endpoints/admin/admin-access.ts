import { hash, timingSafeEqual } from 'node:crypto'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type Call, callOf } from '../../core/call/index.ts'
import { checkOptions } from '../../core/options/index.ts'
import { WrongTokens } from './wrong-tokens.ts'

/** Options of {@link adminAccess}. */
export interface AdminAccessOptions {
  /**
   * The token in `Authorization: Bearer <token>`. It gives access to all money: make it long and random. If it is undefined
   * or empty, there is no admin API and all its paths are `not_found`.
   */
  token: string | undefined
}

/** The middleware that {@link adminAccess} returns. */
export interface AdminAccess extends RequestHandler {
  /** The number of wrong tokens since the start, for metrics. */
  readonly wrongTokens: number
}

/**
 * Admits requests with the operators' token and refuses all others with `missing_credential` or `invalid_credential`. The
 * comparison takes constant time. Wrong tokens are counted and logged. Beyond 20 a minute from one address, or one /56 of
 * IPv6, their answers wait, two a second; while more than ten wait, that address gets `rate_limited`.
 *
 * @throws TypeError at construction if the token has characters other than printable ASCII without spaces.
 * @example
 * app.use('/admin', adminAccess({ token: process.env.ADMIN_TOKEN }), adminRoutes({ accounts, ledger }))
 */
export function adminAccess(options: AdminAccessOptions = { token: undefined }): AdminAccess {
  checkOptions('adminAccess', options, {
    token: {
      be: 'printable ASCII without spaces',
      accepts: (value) => typeof value === 'string' && /^[\x21-\x7e]*$/.test(value),
    },
  })
  const { token } = options
  const wrong = new WrongTokens()
  if (token === undefined || token === '') return counting((req, res, next) => noAdminApi(req, res, next))
  const expected = digest(token)

  return counting(adminAccess)

  function counting(handler: RequestHandler): AdminAccess {
    return Object.defineProperty(handler, 'wrongTokens', { get: () => wrong.count }) as AdminAccess
  }

  function adminAccess(req: Request, _res: Response, next: NextFunction): void {
    const call = callOf(req)
    const pauseMs = wrong.pauseOf(call.clientIp)
    if (pauseMs > 0) {
      next(call.refuse('rate_limited', { retryAfterMs: pauseMs }))
      return
    }
    const authorization = req.headers.authorization?.trim() ?? ''
    const [, sent = ''] = /^bearer +(.+)$/i.exec(authorization) ?? []
    if (timingSafeEqual(digest(sent), expected)) next()
    else if (/^(?:bearer)?$/i.test(authorization))
      next(call.refuse('missing_credential', { message: MISSING }))
    else refuseWrong(call, next)
  }

  function refuseWrong(call: Call, next: NextFunction): void {
    const { waitMs, isFirst } = wrong.note(call.clientIp)
    const refusal = call.refuse('invalid_credential', { message: INVALID })
    // The access log has a line for each.
    if (isFirst) call.logger.warn({ requestId: call.id, ip: call.clientIp }, 'admin: a wrong token was sent')
    if (waitMs === 0) next(refusal)
    else setTimeout(() => next(refusal), waitMs).unref()
  }
}

const MISSING = 'No admin token was sent. Send it as "Authorization: Bearer <token>".'
const INVALID =
  'The admin token is not valid. Check that it was copied completely, and send it as "Authorization: Bearer <token>".'

function noAdminApi(req: Request, _res: Response, next: NextFunction): void {
  next(callOf(req).refuse('not_found'))
}

/** Hashes a text, so that texts of all lengths can be compared in constant time. */
function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}
