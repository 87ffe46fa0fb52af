import type { IncomingMessage } from 'node:http'

/** Returns the path without the query, as the caller sent it. */
export function pathOf(req: IncomingMessage): string {
  const url = (req as { originalUrl?: string }).originalUrl ?? req.url ?? '/'
  const query = url.indexOf('?')
  return query < 0 ? url : url.slice(0, query)
}

/** Returns the caller's address. An IPv4 address on an IPv6 socket is returned as IPv4. */
export function clientIpOf(req: IncomingMessage): string | null {
  const { app } = req as { app?: { enabled?(setting: string): boolean } }
  // Express computes req.ip at each access, even if no proxy is trusted and the result is the socket's address.
  const trusting = app?.enabled?.('trust proxy') ?? false
  const ip = (trusting ? (req as { ip?: string }).ip : undefined) ?? req.socket.remoteAddress ?? null
  return ip?.startsWith('::ffff:') && ip.includes('.') ? ip.slice(7) : ip
}

/** Returns the caller's request id, shortened and printable, because it is logged. */
export function clientRequestIdOf(req: IncomingMessage): string | null {
  const value = req.headers['x-request-id']
  if (typeof value !== 'string' || value === '') return null
  return value.replace(/[^\x20-\x7e]/g, '?').slice(0, 200)
}
