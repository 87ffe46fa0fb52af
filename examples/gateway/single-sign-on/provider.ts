import { createHash } from 'node:crypto'
import { ROLES, type Role } from 'express-model-gateway/admin'
import type { ClientAuth, Configuration } from 'openid-client'
import type { ProviderSettings } from '../config/environment.ts'
import { singleFlight } from '../single-flight.ts'

/** For each request to the provider, in seconds. */
const TIMEOUT_SECONDS = 5
/** How long the provider's description of itself counts. */
const FRESH_MS = 60 * 60_000

/** Thrown if the provider cannot be reached, or does not answer as OpenID Connect says. */
export class ProviderUnavailable extends Error {
  override readonly name = 'ProviderUnavailable'
}

/** A provider of OpenID Connect. It is asked when somebody signs in, and at no other time. */
export class Provider {
  readonly #settings: ProviderSettings
  readonly #secret: () => string
  readonly #configuration: () => Promise<Configuration>

  /** @param secret returns the client's secret as it is now. */
  constructor(settings: ProviderSettings, secret: () => string) {
    this.#settings = settings
    this.#secret = secret
    this.#configuration = singleFlight(
      () => this.#discover(),
      () => FRESH_MS,
    )
  }

  /** The provider's name on the sign-in page. */
  get name(): string {
    return new URL(this.#settings.issuer).host
  }

  /**
   * Returns where the browser goes to sign in.
   *
   * @param secret random, kept by the browser that signs in.
   * @throws {ProviderUnavailable} if the provider cannot be asked.
   */
  async address(secret: string, redirectUri: string): Promise<URL> {
    const { buildAuthorizationUrl } = await import('openid-client')
    const { state, nonce, verifier } = proofsOf(secret)
    return buildAuthorizationUrl(await this.#configuration(), {
      redirect_uri: redirectUri,
      scope: this.#settings.scope,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
      state,
      nonce,
    })
  }

  /** Whether a sign-in was begun with this secret. */
  began(secret: string, state: string | null): boolean {
    return state === proofsOf(secret).state
  }

  /**
   * Exchanges the code of a callback for the claims about the person.
   *
   * @param callback the address that the provider sent the browser to.
   * @throws {ProviderUnavailable} if the provider cannot be asked.
   * @throws if the code, the issuer, the nonce or the signature is not right.
   */
  async redeem(callback: URL, secret: string): Promise<Claims> {
    const { authorizationCodeGrant, fetchUserInfo } = await import('openid-client')
    const { state, nonce, verifier } = proofsOf(secret)
    const configuration = await this.#configuration()
    const tokens = await authorizationCodeGrant(configuration, callback, {
      expectedState: state,
      expectedNonce: nonce,
      pkceCodeVerifier: verifier,
      idTokenExpected: true,
    })
    const claims: Claims & { sub: string } = { sub: '', ...tokens.claims() }
    const isComplete = rolesIn(claims, this.#settings.roleClaim).length > 0
    if (isComplete || configuration.serverMetadata().userinfo_endpoint === undefined) return claims
    // Many providers report the roles only here, or report all of them only here.
    return { ...claims, ...(await fetchUserInfo(configuration, tokens.access_token, claims.sub)) }
  }

  async #discover(): Promise<Configuration> {
    const client = await import('openid-client')
    const { issuer, clientId } = this.#settings
    const url = new URL(issuer)
    const authenticate: ClientAuth = (server, ...rest) => {
      const known = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
      const way = known.includes('client_secret_basic') ? client.ClientSecretBasic : client.ClientSecretPost
      return way(this.#secret())(server, ...rest)
    }
    return client
      .discovery(url, clientId, undefined, authenticate, {
        timeout: TIMEOUT_SECONDS,
        execute: [
          // Signatures are checked although the tokens come over TLS: a proxy on the way may be somebody else's.
          client.enableNonRepudiationChecks,
          ...(url.protocol === 'http:' ? [client.allowInsecureRequests] : []),
        ],
      })
      .catch((error: unknown) => {
        throw new ProviderUnavailable('the provider did not describe itself', { cause: error })
      })
  }
}

/** The proofs of one sign-in. None of them reveals the secret or another proof. */
function proofsOf(secret: string) {
  const proof = (what: string) => createHash('sha256').update(`${what}:${secret}`).digest('base64url')
  return { state: proof('state'), nonce: proof('nonce'), verifier: proof('verifier') }
}

export type Claims = Readonly<Record<string, unknown>>

/**
 * Returns the roles that a claim holds: one name, or a list. Names that are no roles are ignored. The claim may be a path
 * into objects, such as `realm_access.roles`.
 */
export function rolesIn(claims: Claims, claim: string): readonly Role[] {
  const value = Object.hasOwn(claims, claim) ? claims[claim] : at(claims, claim.split('.'))
  const names = Array.isArray(value) ? value : [value]
  return ROLES.filter((role) => names.includes(role))
}

function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => {
    if (typeof inner !== 'object' || inner === null || !Object.hasOwn(inner, name)) return undefined
    return (inner as Claims)[name]
  }, value)
}

const MAX_NAME = 200

/**
 * Returns the name for the change log. A person can often choose the address and the name that the provider shows, so the
 * subject stands behind it.
 */
export function nameIn({ sub, email, preferred_username: username }: Claims): string {
  const subject = printable(sub)
  const shown = printable(email) || printable(username)
  if (shown === '' || shown === subject) return subject.slice(0, MAX_NAME)
  return `${shown.slice(0, MAX_NAME - subject.length - 3)} (${subject})`.slice(0, MAX_NAME)
}

function printable(value: unknown): string {
  return typeof value === 'string' ? value.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 150) : ''
}
