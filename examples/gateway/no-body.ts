import type { NextFunction, Request, Response } from 'express'
import { callOf } from 'express-model-gateway'

const MAX_BYTES = 64 * 1024

/**
 * Refuses long bodies on paths that nobody needs a key for. Node would otherwise read a body to its end behind the answer,
 * however long it is.
 */
export function noBody(req: Request, _res: Response, next: NextFunction): void {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = req.headers
  next(
    encoding === undefined && Number(length) <= MAX_BYTES
      ? undefined
      : callOf(req).refuse('request_too_large'),
  )
}
