import type { Request } from 'express'
import { callOf } from './open-call.ts'

/**
 * Returns the address of the gateway, up to the protocols' own paths: the path before them is where it is mounted.
 *
 * @param origin Defaults to the one that the caller used.
 */
export function baseAddressOf(req: Request, origin = `${req.protocol}://${req.host}`): string {
  return origin.replace(/\/$/, '') + callOf(req).path.replace(/\/(?:api\/v3|v1)\/.*$/i, '')
}
