import type { NextFunction, Request, Response, Router } from 'express'
import createRouter from 'router'

/**
 * Returns a router of Express 5. It comes from Express's own package for routers: the whole of Express loads slowly. The
 * router does not answer OPTIONS by itself, so that this method is `not_found` as any other that a path does not have.
 */
export function newRouter(): Router {
  const router = createRouter() as unknown as Router
  return router.use(passOptions)
}

function passOptions({ method }: Request, _res: Response, next: NextFunction): void {
  next(method === 'OPTIONS' ? 'router' : undefined)
}
