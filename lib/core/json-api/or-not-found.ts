import type { Request } from 'express'
import { callOf } from '../call/index.ts'

/** Returns the id in the path of a request. */
export function idIn(req: Request): string {
  return String(req.params.id)
}

/**
 * Returns what was looked up.
 *
 * @throws {GatewayError} `not_found` if it is undefined.
 */
export function orNotFound<T extends object>(req: Request, found: T | undefined): T {
  if (!found) throw callOf(req).refuse('not_found')
  return found
}
