import type { Request } from 'express'
import { callOf, operatorOf } from '../call/index.ts'
import type { ChangeOrigin } from './change-log.ts'

const ACTOR = /^[\x20-\x7e]{1,200}$/

/**
 * Returns who makes a change: the name of the operator whose token or session sends the request, else the value of the
 * header `X-Admin-Actor`, else `admin`.
 */
export function actorOf(req: Request): string {
  const name = operatorOf(req)?.name
  if (name) return name
  const actor = req.get('x-admin-actor')
  if (actor === undefined) return 'admin'
  if (ACTOR.test(actor)) return actor
  const message = 'The header X-Admin-Actor must be 1 to 200 printable ASCII characters.'
  throw callOf(req).refuse('invalid_request', { message })
}

/** Returns the origin of the change that a request makes. */
export function changeOrigin(req: Request, actor: (req: Request) => string): ChangeOrigin {
  const { id, startedAt } = callOf(req)
  return { requestId: id, actor: actor(req), at: startedAt }
}
