/** Who calls, as the company has it: a middleware of its own in the place of `authenticate`. */

import type { Request, RequestHandler } from 'express'
import { type Call, callOf } from 'express-model-gateway'

/** Somebody who works here. */
export interface Person {
  readonly name: string
  readonly team: string
}

/** By call and not on the request: whoever has the call can ask, and nothing of it outlives the call. */
const people = new WeakMap<Call, Person>()

/** Who makes this request; behind {@link staffOnly}. */
export function personOf(req: Request): Person | undefined {
  return people.get(callOf(req))
}

/**
 * Lets in who has one of these tokens. A real one would ask the company's own sessions.
 *
 * @param tokens people by their tokens.
 */
export function staffOnly(tokens: ReadonlyMap<string, Person>): RequestHandler {
  return function staffOnly(req, _res, next) {
    const call = callOf(req)
    const token = /^Bearer (\S+)$/i.exec(req.get('authorization') ?? '')?.[1]
    if (token === undefined) {
      next(call.refuse('missing_credential'))
      return
    }
    const person = tokens.get(token)
    if (!person) {
      next(call.refuse('invalid_credential'))
      return
    }
    people.set(call, person)
    next()
  }
}
