import { hash, timingSafeEqual } from 'node:crypto'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { callOf } from '../../core/call/index.ts'

/** Options of {@link adminAccess}. */
export interface AdminAccessOptions {
  /**
   * What `Authorization: Bearer <token>` must carry. Whoever has it can move money: make it long and random. Undefined
   * or empty: there is no admin API, every path is `not_found`.
   */
  token: string | undefined
}

/**
 * Lets only those pass who have the operators' token; refuses with `missing_credential` and `invalid_credential`. How
 * long the comparison takes says nothing about the token.
 *
 * @throws TypeError at construction when the token has characters that a header cannot carry in one word.
 * @example
 * app.use('/admin', adminAccess({ token: process.env.ADMIN_TOKEN }), adminRoutes({ accounts, ledger }))
 */
export function adminAccess({ token }: AdminAccessOptions): RequestHandler {
  if (token === undefined || token === '') return noAdminApi
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token))
    throw new TypeError('adminAccess: "token" must be printable ASCII without spaces')
  const expected = digest(token)

  return function adminAccess(req: Request, _res: Response, next: NextFunction): void {
    const authorization = req.headers.authorization?.trim() ?? ''
    const [, sent = ''] = /^bearer +(.+)$/i.exec(authorization) ?? []
    if (timingSafeEqual(digest(sent), expected)) next()
    else if (/^(?:bearer)?$/i.test(authorization))
      next(callOf(req).refuse('missing_credential', { message: MISSING }))
    else next(callOf(req).refuse('invalid_credential', { message: INVALID }))
  }
}

const MISSING = 'No admin token was sent. Send it as "Authorization: Bearer <token>".'
const INVALID = 'The admin token is not valid here. Send it whole, as "Authorization: Bearer <token>".'

function noAdminApi(req: Request, _res: Response, next: NextFunction): void {
  next(callOf(req).refuse('not_found'))
}

/** Of one length, whatever the text's. */
function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}
