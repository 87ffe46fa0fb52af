/** The company's own authentication, a middleware in place of `authenticate`. */

import type { Request, RequestHandler } from 'express'
import { type Call, callOf } from 'express-model-gateway'

/** An employee. */
export interface Person {
  readonly name: string
  readonly team: string
}

/** The employee of each call. Entries end with their calls. */
const people = new WeakMap<Call, Person>()

/** Returns the employee who makes a request, behind {@link staffOnly}. */
export function personOf(req: Request): Person | undefined {
  return people.get(callOf(req))
}

/**
 * Admits requests with a known token. A real app would check the company's sessions.
 *
 * @param tokens the employees, by their tokens.
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
