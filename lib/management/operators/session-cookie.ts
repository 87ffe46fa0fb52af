import type { Request, Response } from 'express'
import { isRead } from '../../core/call/index.ts'

/** A browser takes a cookie of this prefix over TLS only, and from this very host. */
const HOST_PREFIX = '__Host-'
const NAME = 'gateway_session'

/** Over TLS, the cookie must have the prefix: other hosts of the domain can set one without it. */
const WITH_PREFIX = new RegExp(`(?:^|;) *${HOST_PREFIX}${NAME}=([\\w-]{43})(?:;|$)`)
const ANY = new RegExp(`(?:^|;) *(?:${HOST_PREFIX})?${NAME}=([\\w-]{43})(?:;|$)`)

/**
 * Returns the secret of the session cookie, if the request is one of the console's own page. Browsers add cookies to requests
 * that pages of other origins cause. Those cannot add the header `X-Gateway-Console`, and name their origin.
 */
export function sessionSecretOf(req: Request): string | undefined {
  const [, secret] = (req.secure ? WITH_PREFIX : ANY).exec(req.headers.cookie ?? '') ?? []
  return secret !== undefined && isOwnPage(req) ? secret : undefined
}

function isOwnPage(req: Request): boolean {
  if (req.headers['x-gateway-console'] === undefined) return false
  const site = req.headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin'
  // Without TLS, browsers send no Sec-Fetch-Site, but with each change the origin.
  const { origin } = req.headers
  if (origin === undefined) return isRead(req.method)
  return URL.canParse(origin) && new URL(origin).host === req.host
}

/**
 * Sets the session cookie. Scripts cannot read it, and requests from other sites do not have it.
 *
 * @param options.secure whether the browser came over TLS.
 */
export function setSessionCookie(
  res: Response,
  secret: string,
  { secure, maxAgeMs }: { readonly secure: boolean; readonly maxAgeMs: number },
): void {
  const name = secure ? `${HOST_PREFIX}${NAME}` : NAME
  res.cookie(name, secret, { httpOnly: true, sameSite: 'strict', secure, path: '/', maxAge: maxAgeMs })
}

/** Removes the session cookie, whichever there is. */
export function clearSessionCookie(res: Response): void {
  for (const name of [NAME, `${HOST_PREFIX}${NAME}`]) {
    const secure = name.startsWith(HOST_PREFIX)
    res.clearCookie(name, { httpOnly: true, sameSite: 'strict', secure, path: '/' })
  }
}
