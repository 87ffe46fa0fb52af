import type { Router } from 'express'
import createRouter from 'router'

/** Returns a router of Express 5. It comes from Express's own package for routers: the whole of Express loads slowly. */
export function newRouter(): Router {
  return createRouter() as unknown as Router
}
