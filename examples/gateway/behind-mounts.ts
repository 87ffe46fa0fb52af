import type { IncomingMessage } from 'node:http'
import { type Express, type Request, type RequestHandler, type Response, Router } from 'express'

/** What Express sets on an app that is mounted in another. */
interface Mounted {
  readonly mountpath: string | string[]
  readonly parent?: Express & Mounted
}

/**
 * Serves a request that has not gone through the apps in which an app is mounted: takes the paths of the mounts off its URL as
 * these do. A URL that is not under them stays as it is.
 */
export function behindMounts(app: Express & Mounted, req: IncomingMessage, serve: () => void): void {
  let handler: RequestHandler = serve
  for (let at: Mounted = app; at.parent; at = at.parent) {
    const router = Router({ caseSensitive: at.parent.enabled('case sensitive routing') })
    handler = router.use(at.mountpath, handler)
  }
  // The routers answer nothing themselves.
  handler(req as Request, {} as Response, serve)
}
