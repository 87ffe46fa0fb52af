import { settingFault } from '../secret-settings.ts'

/** A provider of OpenID Connect that operators sign in at. */
export interface ProviderSettings {
  /** Its issuer identifier, such as `https://login.example.com`. */
  readonly issuer: string
  readonly clientId: string
  /** The secret itself, or `file:PATH`. */
  readonly clientSecret: string
  /** The claim that holds a role, or a list of them. */
  readonly roleClaim: string
  /** The scopes to ask for. */
  readonly scope: string
  /** Where the provider sends the browser back to; undefined: `/console/sign-in/callback` at the origin of the request. */
  readonly redirectUri: string | undefined
}

/** Reads the provider from the environment; undefined = there is none. Adds each fault to `faults`. */
export function readProvider(env: NodeJS.ProcessEnv, faults: string[]): ProviderSettings | undefined {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret } = env
  if (!issuer && !clientId && !clientSecret) return undefined
  if (!issuer || !isSafe(issuer))
    faults.push('OIDC_ISSUER: must be an https:// address, or http:// of this machine')
  if (!clientId) faults.push('OIDC_CLIENT_ID: is needed beside OIDC_ISSUER')
  if (!clientSecret) faults.push('OIDC_CLIENT_SECRET: is needed beside OIDC_ISSUER')
  const secretFault = clientSecret && settingFault(clientSecret, () => undefined)
  if (secretFault) faults.push(`OIDC_CLIENT_SECRET: ${secretFault}`)
  if (!env.ADMIN_TOKEN) faults.push('OIDC_ISSUER: set ADMIN_TOKEN too; without it there is no admin API')
  const redirectUri = env.OIDC_REDIRECT_URI || undefined
  if (redirectUri !== undefined && !(isSafe(redirectUri) && redirectUri.endsWith(CALLBACK)))
    faults.push(`OIDC_REDIRECT_URI: must be an https:// address that ends in ${CALLBACK}`)
  return {
    issuer: issuer ?? '',
    clientId: clientId ?? '',
    clientSecret: clientSecret ?? '',
    roleClaim: env.OIDC_ROLE_CLAIM || 'roles',
    scope: env.OIDC_SCOPE || 'openid profile email',
    redirectUri,
  }
}

const CALLBACK = '/console/sign-in/callback'

/** Codes and secrets go over this address. */
function isSafe(address: string): boolean {
  if (!URL.canParse(address)) return false
  const { protocol, hostname } = new URL(address)
  return (
    protocol === 'https:' ||
    (protocol === 'http:' && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname))
  )
}
