import type { IncomingMessage } from 'node:http'
import { type Express, type Request, type RequestHandler, type Response, Router } from 'express'

/** What Express sets on an app that is mounted in another. A router that mounts it sets nothing. */
interface Mounted {
  readonly mountpath: string | string[]
  readonly parent?: Express & Mounted
}

/** What stands before the first segment of a path of the gateway. */
const BEFORE_OWN_PATHS = /^[^?]*?(?=\/(?:v1|api\/v3|openai)\/)/i

/**
 * Serves a request that has not gone through the apps and routers in which an app is mounted: takes the paths of the mounts off
 * its URL as these do. Where a router has mounted it, whose path nobody can know, they end where a path of the gateway begins.
 */
export function behindMounts(app: Express & Mounted, req: IncomingMessage, serve: () => void): void {
  const own = req as Request
  const serveOwnPath = (): void => {
    own.originalUrl ??= own.url
    own.url = own.url.replace(BEFORE_OWN_PATHS, '')
    serve()
  }
  let handler: RequestHandler = app.parent ? serve : serveOwnPath
  for (let at: Mounted = app; at.parent; at = at.parent) {
    const router = Router({ caseSensitive: at.parent.enabled('case sensitive routing') })
    handler = router.use(at.mountpath, handler)
  }
  // The routers answer nothing themselves.
  handler(own, {} as Response, serveOwnPath)
}
