import type { IncomingMessage } from 'node:http'

/** Path without the query, as the caller sent it. */
export function pathOf(req: IncomingMessage): string {
  const url = (req as { originalUrl?: string }).originalUrl ?? req.url ?? '/'
  const query = url.indexOf('?')
  return query < 0 ? url : url.slice(0, query)
}

/** An IPv4 address that came over an IPv6 socket is the IPv4 address. */
export function clientIpOf(req: IncomingMessage): string | null {
  const { app } = req as { app?: { enabled?(setting: string): boolean } }
  // Express works out req.ip anew at every look, even where no proxy is trusted and the answer is the socket's.
  const trusting = app?.enabled?.('trust proxy') ?? false
  const ip = (trusting ? (req as { ip?: string }).ip : undefined) ?? req.socket.remoteAddress ?? null
  return ip?.startsWith('::ffff:') && ip.includes('.') ? ip.slice(7) : ip
}

/** Bounded and printable: it ends up in logs. */
export function clientRequestIdOf(req: IncomingMessage): string | null {
  const value = req.headers['x-request-id']
  if (typeof value !== 'string' || value === '') return null
  return value.replace(/[^\x20-\x7e]/g, '?').slice(0, 200)
}
