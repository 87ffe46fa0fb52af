import type { NextFunction, Request, RequestHandler, Response, Router } from 'express'
import createRouter from 'router'
import { z } from 'zod'
import { jsonBody, readBody } from './json-body.ts'
import { readQuery } from './list-page.ts'

const METHODS = ['get', 'post', 'patch', 'put', 'delete'] as const

/**
 * Returns a router of Express 5 for routes of our own. They refuse what they do not know: a route without `jsonBody` takes no
 * member of a body, and one without {@link ownQuery} no parameter of a query.
 */
export function newRouter(): Router {
  const router = protocolRouter()
  for (const method of METHODS) {
    const add = router[method].bind(router) as (path: string, ...handlers: RequestHandler[]) => Router
    router[method] = ((path: string, ...handlers: RequestHandler[]) => {
      const guards = [
        ...(handlers.includes(ownQuery) ? [] : [refuseQuery]),
        ...(handlers.includes(jsonBody) ? [] : [jsonBody, refuseBody]),
      ]
      return add(path, ...guards, ...handlers)
    }) as (typeof router)[typeof method]
  }
  return router
}

/**
 * Returns a router of Express 5 for the routes of a provider's protocol, whose clients add parameters of their own. It comes
 * from Express's own package for routers: the whole of Express loads slowly.
 */
export function protocolRouter(): Router {
  return createRouter() as unknown as Router
}

/** Marks a route that reads its query by itself. */
export function ownQuery(_req: Request, _res: Response, next: NextFunction): void {
  next()
}

const nothing = z.strictObject({})

function refuseQuery(req: Request, _res: Response, next: NextFunction): void {
  readQuery(req, nothing)
  next()
}

function refuseBody(req: Request, _res: Response, next: NextFunction): void {
  readBody(req, nothing.optional())
  next()
}
