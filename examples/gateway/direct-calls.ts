import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { ErrorRequestHandler, Express, Request, RequestHandler, Response } from 'express'
import { unknownPath } from 'express-model-gateway'
import { OPERATIONS } from 'express-model-gateway/operations'
import type { ChainOf } from './azure-paths.ts'

/**
 * Returns a listener that serves an app, and most model calls without its router, which allocates 3 KB for each request. A
 * path in another spelling, or with a query, goes to the app, which must have the same chains.
 *
 * @param before runs before each chain.
 * @param answerError receives the errors of chains.
 */
export function servingDirectly(
  app: Express,
  before: readonly RequestHandler[],
  chainOf: ChainOf,
  answerError: ErrorRequestHandler,
): RequestListener {
  const chains = new Map<string | undefined, readonly RequestHandler[]>()
  for (const operation of OPERATIONS)
    chains.set(operation.path, [...before, ...chainOf({ operation }), unknownPath()])
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
      try {
        answerError(error, req, res, next)
      } catch {
        // An error that cannot be answered ends its connection.
        res.destroy()
      }
      return
    }
    try {
      const running: unknown = chain[at++]?.(req, res, next)
      if (running instanceof Promise)
        running.catch((error: unknown) => next(error || new Error('Rejected promise')))
    } catch (thrown) {
      next(thrown)
    }
  }
  next()
}
