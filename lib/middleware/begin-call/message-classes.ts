import type { ServerOptions } from 'node:http'
import type { Express } from 'express'
import { http } from '../../core/call/node-http.ts'
import { kindOf } from '../../core/options/index.ts'
import { listingResponse } from './listed-headers.ts'

type MessageClasses = Required<Pick<ServerOptions, 'IncomingMessage' | 'ServerResponse'>>

/** A second pair would inherit from itself. */
const classes = new WeakMap<Express, MessageClasses>()

/**
 * Returns classes for `http.createServer` whose instances have the prototypes of an Express app from the start.
 * Express otherwise changes the prototype of each request and response, which makes both slower. This saves about a
 * tenth of the cost of a call.
 *
 * All servers of an app get the same classes.
 *
 * Members that are added to `app.request` and `app.response`, before or after, work as usual.
 *
 * @param app the app. Its `request` and `response` are replaced by the prototypes of the classes. Call this before
 * other apps are mounted in it.
 * @throws TypeError if it is none, such as a Router.
 * @example
 * const app = express()
 * createServer({ ...messageClassesOf(app), headersTimeout: 15_000 }, app).listen(8787)
 */
export function messageClassesOf(app: Express): MessageClasses {
  const known = classes.get(app)
  if (known) return known
  if (typeof app !== 'function' || !('request' in app))
    throw new TypeError(`messageClassesOf: it needs an app of Express, such as express(), not ${kindOf(app)}`)
  // Derived classes rather than functions: V8 then allocates Node's own members at once.
  class AppRequest extends http.IncomingMessage {}
  const AppResponse = listingResponse()
  app.request = copyInto(app.request, AppRequest.prototype)
  app.response = copyInto(app.response, AppResponse.prototype)
  const made: MessageClasses = { IncomingMessage: AppRequest, ServerResponse: AppResponse }
  classes.set(app, made)
  return made
}

/** Turns `prototype` into a copy of `known`, which inherits from it from now on, for the apps that are mounted already. */
function copyInto<Known extends object>(known: Known, prototype: object): Known {
  Object.setPrototypeOf(prototype, Object.getPrototypeOf(known))
  Object.defineProperties(prototype, Object.getOwnPropertyDescriptors(known))
  Object.setPrototypeOf(known, prototype)
  return prototype as Known
}
