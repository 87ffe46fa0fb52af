import type { IncomingMessage } from 'node:http'

/** What stands before the first segment of a path of the gateway. */
const MOUNT = /^[^?]*?(?=\/(?:v1|api\/v3|openai)\/)/i

/**
 * Takes the path off a request under which the gateway is mounted, as the apps and routers would that the request has not gone
 * through. Nobody knows the path of a router.
 */
export function takeMountOff(req: IncomingMessage & { originalUrl?: string }): void {
  const { url = '' } = req
  req.originalUrl = url
  req.url = url.replace(MOUNT, '')
}
