import { randomBytes } from 'node:crypto'
import type { Request, RequestHandler, Response } from 'express'
import { callOf, ipSubject, type Logger } from 'express-model-gateway'
import { type AdminAccess, type SessionStore, setSessionCookie } from 'express-model-gateway/admin'
import { hashSecret } from 'express-model-gateway/authenticate'
import type { ProviderSettings } from '../config/environment.ts'
import { followSecret } from '../config/secret-settings.ts'
import { errorText } from '../errors.ts'
import { nameIn, Provider, ProviderUnavailable, rolesIn } from './provider.ts'

/** The options of the sign-in at a provider. */
export interface SignInParts {
  readonly sessions: SessionStore
  /** Counts failed attempts together with wrong tokens. */
  readonly guesses: AdminAccess['guesses']
  readonly logger: Logger
}

/** How long a session lasts. */
const SESSION_MS = 8 * 60 * 60_000
/** How long signing in at the provider may take. */
const SIGN_IN_MS = 10 * 60_000

/** Why nobody is signed in, for the console's page. */
type Refusal = 'no_role' | 'away' | 'failed' | 'slow_down'

/**
 * Signs operators in at a provider of OpenID Connect: the authorization code flow with PKCE, a state and a nonce. Mount it
 * at `/console/sign-in`, before the console. `/provider` names the provider, for the console's page; `/callback` is where
 * the provider sends the browser.
 *
 * @param settings undefined: there is no provider.
 */
export function signIn(settings: ProviderSettings | undefined, given: SignInParts): RequestHandler {
  const secretOf = ({ clientSecret }: ProviderSettings) =>
    followSecret('OIDC_CLIENT_SECRET', clientSecret, given.logger)
  const atOnce = new SignInsAtOnce()
  const networkOf = ipSubject()
  const parts = settings && { ...given, settings, provider: new Provider(settings, secretOf(settings)) }
  return async function signIn(req, res, next): Promise<void> {
    if (req.method !== 'GET') return next()
    res.set({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
    if (req.path === '/provider') return void res.json({ name: parts?.provider.name ?? null })
    if (!parts) return next()
    if (req.path === '/') return begin(parts, req, res)
    if (req.path === '/callback') {
      const refused = await atOnce.run(networkOf(req) ?? '', () => finish(parts, req, res))
      return refused && sendWait(res, refused)
    }
    next()
  }
}

type Parts = SignInParts & { readonly settings: ProviderSettings; readonly provider: Provider }

async function begin({ provider, settings }: Parts, req: Request, res: Response): Promise<void> {
  const secret = randomBytes(32).toString('base64url')
  let address: URL
  try {
    address = await provider.address(secret, redirectUriOf(req, settings))
  } catch (error) {
    callOf(req).logger.warn({ err: error }, `single sign-on: ${provider.name} cannot be reached`)
    return back(res, '../console', 'away')
  }
  // Lax: the way back from the provider is one from another site.
  res.cookie(cookieName(req), secret, { ...cookieOptions(req), maxAge: SIGN_IN_MS })
  res.redirect(303, address.href)
}

async function finish(parts: Parts, req: Request, res: Response): Promise<void> {
  const { provider, settings, guesses, sessions } = parts
  const { clientIp, logger, id, startedAt } = callOf(req)
  const [, secret] =
    new RegExp(`(?:^|;) *${cookieName(req)}=([\\w-]{43})(?:;|$)`).exec(req.headers.cookie ?? '') ?? []
  // No sign-in was begun here: nothing is tried, so nothing can be guessed.
  if (secret === undefined) return back(res, '../../console', 'failed')
  res.clearCookie(cookieName(req), cookieOptions(req))
  if (guesses.pauseOf(clientIp) > 0) return back(res, '../../console', 'slow_down')
  const callback = new URL(redirectUriOf(req, settings))
  callback.search = new URL(req.originalUrl, callback).search
  try {
    if (!provider.began(secret, callback.searchParams.get('state')))
      throw new Error('the state is not the one that was sent')
    const claims = await provider.redeem(callback, secret)
    const roles = rolesIn(claims, settings.roleClaim)
    const name = nameIn(claims)
    if (roles.length === 0) {
      logger.warn({ requestId: id, name, claim: settings.roleClaim }, 'single sign-on: no role')
      return back(res, '../../console', 'no_role')
    }
    const session = randomBytes(32).toString('base64url')
    await sessions.open(
      {
        id: `session_${randomBytes(12).toString('hex')}`,
        secretHash: hashSecret(session),
        name,
        roles,
        expiresAt: startedAt + SESSION_MS,
      },
      { requestId: id, actor: name, at: startedAt },
    )
    setSessionCookie(res, session, { secure: isSecure(req, settings), maxAgeMs: SESSION_MS })
    back(res, '../../console')
  } catch (error) {
    const away = isAway(error)
    logger.warn({ requestId: id, ip: clientIp, reason: errorText(error) }, 'single sign-on: failed')
    const waitMs = away ? 0 : guesses.note(clientIp).waitMs
    setTimeout(() => back(res, '../../console', away ? 'away' : 'failed'), waitMs).unref()
  }
}

/** Sends the browser to the console, relative to this address: it may be below a proxy's prefix. */
function back(res: Response, console: string, refusal?: Refusal): void {
  res.redirect(303, refusal === undefined ? console : `${console}?refused=${refusal}`)
}

function redirectUriOf(req: Request, { redirectUri }: ProviderSettings): string {
  return redirectUri ?? `${req.protocol}://${req.host}${req.baseUrl}/callback`
}

function isSecure(req: Request, { redirectUri }: ProviderSettings): boolean {
  return req.secure || redirectUri?.startsWith('https:') === true
}

/** Over TLS, browsers take the name from this very host only. */
function cookieName(req: Request): string {
  return `${req.secure ? '__Host-' : ''}gateway_sign_in`
}

function cookieOptions(req: Request) {
  return { httpOnly: true, sameSite: 'lax', secure: req.secure, path: '/' } as const
}

/** The codes of errors that say nothing about who signs in: no answer came, or one that is no JSON. */
const NO_ANSWER = new Set(['OAUTH_TIMEOUT', 'OAUTH_RESPONSE_IS_NOT_JSON', 'OAUTH_PARSE_ERROR'])

/**
 * Whether the provider could not be asked, or failed; all else is what it said. Its failures must not count as wrong tokens:
 * they would slow down those who share an address.
 */
function isAway(error: unknown): boolean {
  if (error instanceof globalThis.Response)
    return error.status < 400 || error.status === 429 || error.status >= 500
  if (!(error instanceof Error)) return false
  if (error instanceof ProviderUnavailable || error.message === 'fetch failed') return true
  if (error.cause instanceof globalThis.Response) return isAway(error.cause)
  const { code } = error as NodeJS.ErrnoException
  return NO_ANSWER.has(code ?? '') || isAway(error.cause)
}

const MAX = 8
const MAX_OF_NETWORK = 2
const RETRY_SECONDS = 5

/**
 * Counts the sign-ins that wait for the provider. Those of one network must not take the places of all others while the
 * provider is slow.
 */
class SignInsAtOnce {
  readonly #waiting = new Map<string, number>()

  /** Runs a sign-in of a network. Returns the status to refuse it with instead, if too many wait. */
  async run(network: string, signIn: () => Promise<void>): Promise<429 | 503 | undefined> {
    const ofNetwork = this.#waiting.get(network) ?? 0
    if (ofNetwork >= MAX_OF_NETWORK) return 429
    if ([...this.#waiting.values()].reduce((sum, count) => sum + count, 0) >= MAX) return 503
    this.#waiting.set(network, ofNetwork + 1)
    try {
      await signIn()
    } finally {
      const left = (this.#waiting.get(network) ?? 0) - 1
      if (left > 0) this.#waiting.set(network, left)
      else this.#waiting.delete(network)
    }
  }
}

/** Answers a page that asks for patience. The sign-in is not spent: the same address can be loaded again. */
function sendWait(res: Response, status: 429 | 503): void {
  const who = status === 429 ? 'your network' : 'this gateway'
  res
    .status(status)
    .set({ 'retry-after': `${RETRY_SECONDS}`, 'content-security-policy': "default-src 'none'" })
    .type('html')
    .send(
      `<!doctype html><html lang="en"><title>Please wait</title><h1>Too many sign-ins at once</h1>` +
        `<p>The identity provider is slow, and too many sign-ins of ${who} are waiting. Reload this page in a few seconds.</p></html>`,
    )
}
