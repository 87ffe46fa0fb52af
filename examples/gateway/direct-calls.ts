import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { ErrorRequestHandler, Express, Request, RequestHandler, Response } from 'express'

/**
 * Returns a listener that serves an app, and POSTs to some paths without its router, which allocates 3 KB for each request.
 * A path in another spelling, or with a query, goes to the app, which must serve it as well.
 *
 * @param chains the middlewares by path. The last of them must answer or fail.
 * @param answerError receives their errors.
 */
export function servingDirectly(
  app: Express,
  chains: ReadonlyMap<string | undefined, readonly RequestHandler[]>,
  answerError: ErrorRequestHandler,
): RequestListener {
  return (req: IncomingMessage, res: ServerResponse) => {
    const chain = req.method === 'POST' ? chains.get(req.url) : undefined
    if (chain) run(chain, answerError, req as Request, res as Response)
    else app(req, res)
  }
}

/** Runs middlewares one after the other, as a route of Express does. */
function run(
  chain: readonly RequestHandler[],
  answerError: ErrorRequestHandler,
  req: Request,
  res: Response,
): void {
  let at = 0
  const next = (error?: unknown): void => {
    if (error) {
      answerError(error, req, res, next)
      return
    }
    try {
      const running: unknown = chain[at++]?.(req, res, next)
      if (running instanceof Promise) running.catch(next)
    } catch (thrown) {
      next(thrown)
    }
  }
  next()
}
