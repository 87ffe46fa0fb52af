import { hash, timingSafeEqual } from 'node:crypto'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { callOf } from '../../core/call/index.ts'

/** Options of {@link adminAccess}. */
export interface AdminAccessOptions {
  /**
   * The token in `Authorization: Bearer <token>`. It gives access to all money: make it long and random. If it is undefined
   * or empty, there is no admin API and all its paths are `not_found`.
   */
  token: string | undefined
}

/**
 * Admits requests with the operators' token and refuses all others with `missing_credential` or `invalid_credential`. The
 * comparison takes constant time.
 *
 * @throws TypeError at construction if the token has characters other than printable ASCII without spaces.
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
const INVALID =
  'The admin token is not valid. Check that it was copied completely, and send it as "Authorization: Bearer <token>".'

function noAdminApi(req: Request, _res: Response, next: NextFunction): void {
  next(callOf(req).refuse('not_found'))
}

/** Hashes a text, so that texts of all lengths can be compared in constant time. */
function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}
