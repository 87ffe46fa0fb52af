import { IncomingMessage, type ServerOptions, ServerResponse } from 'node:http'
import type { Express } from 'express'

/**
 * Classes for `http.createServer` whose requests and responses are those of an Express app from the start. Express
 * changes the prototype of each request and response it is handed, which makes both slower to read ever after; of
 * objects that have it already nothing is changed. It saves about a tenth of what a call costs.
 *
 * What is put on `app.request` and `app.response`, before or after, is there as always.
 *
 * @param app whose `request` and `response` are replaced by copies that the classes make instances of. Call it before
 * other apps are mounted in it.
 * @example
 * const app = express()
 * createServer({ ...messageClassesOf(app), headersTimeout: 15_000 }, app).listen(8787)
 */
export function messageClassesOf(
  app: Express,
): Required<Pick<ServerOptions, 'IncomingMessage' | 'ServerResponse'>> {
  // Classes that are derived, not functions: V8 then makes room for Node's own members at once.
  class AppRequest extends IncomingMessage {}
  class AppResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {}
  app.request = stepInto(app.request, AppRequest.prototype)
  app.response = stepInto(app.response, AppResponse.prototype)
  return { IncomingMessage: AppRequest, ServerResponse: AppResponse }
}

/** Makes one prototype what another is. */
function stepInto<Known extends object>(known: Known, prototype: object): Known {
  Object.setPrototypeOf(prototype, Object.getPrototypeOf(known))
  return Object.defineProperties(prototype, Object.getOwnPropertyDescriptors(known)) as Known
}
