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

/** A provider as somebody gives it, unchecked. */
export type GivenProvider = Pick<ProviderSettings, 'issuer' | 'clientId' | 'clientSecret'> & {
  readonly roleClaim?: string | undefined
  readonly scope?: string | undefined
  readonly redirectUri?: string | undefined
}

/** Reads the provider from the environment; undefined = there is none. Adds each fault to `faults`. */
export function readProvider(env: NodeJS.ProcessEnv, faults: string[]): ProviderSettings | undefined {
  const {
    OIDC_ISSUER: issuer = '',
    OIDC_CLIENT_ID: clientId = '',
    OIDC_CLIENT_SECRET: clientSecret = '',
  } = env
  if (!issuer && !clientId && !clientSecret) return undefined
  const given = {
    issuer,
    clientId,
    clientSecret,
    roleClaim: env.OIDC_ROLE_CLAIM || undefined,
    scope: env.OIDC_SCOPE || undefined,
    redirectUri: env.OIDC_REDIRECT_URI || undefined,
  }
  for (const [member, fault] of providerFaults(given)) faults.push(`${VARIABLES[member]}: ${fault}`)
  if (!env.ADMIN_TOKEN) faults.push('OIDC_ISSUER: set ADMIN_TOKEN too; without it there is no admin API')
  return completeProvider(given)
}

const VARIABLES: Readonly<Record<keyof ProviderSettings, string>> = {
  issuer: 'OIDC_ISSUER',
  clientId: 'OIDC_CLIENT_ID',
  clientSecret: 'OIDC_CLIENT_SECRET',
  roleClaim: 'OIDC_ROLE_CLAIM',
  scope: 'OIDC_SCOPE',
  redirectUri: 'OIDC_REDIRECT_URI',
}

/** Returns what is wrong with each member of a provider. */
export function providerFaults(given: GivenProvider): [member: keyof ProviderSettings, fault: string][] {
  const { issuer, clientId, clientSecret, roleClaim, scope, redirectUri } = given
  const faults: [keyof ProviderSettings, string][] = []
  if (!isSafe(issuer)) faults.push(['issuer', 'must be an https:// address, or http:// of this machine'])
  for (const [member, text] of Object.entries({ clientId, clientSecret }))
    if (typeof text !== 'string' || text === '')
      faults.push([member as 'clientId' | 'clientSecret', 'is needed beside the issuer'])
  const secretFault =
    typeof clientSecret === 'string' && clientSecret !== '' && settingFault(clientSecret, () => undefined)
  if (secretFault) faults.push(['clientSecret', secretFault])
  for (const [member, text] of Object.entries({ roleClaim, scope }))
    if (text !== undefined && (typeof text !== 'string' || text === ''))
      faults.push([member as 'roleClaim' | 'scope', 'must be a string that is not empty'])
  if (redirectUri !== undefined && !(isSafe(redirectUri) && redirectUri.endsWith(CALLBACK)))
    faults.push(['redirectUri', `must be an https:// address that ends in ${CALLBACK}`])
  return faults
}

/** Returns a provider with the defaults of what was left out. */
export function completeProvider(given: GivenProvider): ProviderSettings {
  const {
    issuer,
    clientId,
    clientSecret,
    roleClaim = 'roles',
    scope = 'openid profile email',
    redirectUri,
  } = given
  return { issuer, clientId, clientSecret, roleClaim, scope, redirectUri }
}

const CALLBACK = '/console/sign-in/callback'

/** Codes and secrets go over this address. */
function isSafe(address: string): boolean {
  if (typeof address !== 'string' || !URL.canParse(address)) return false
  const { protocol, hostname } = new URL(address)
  return (
    protocol === 'https:' ||
    (protocol === 'http:' && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname))
  )
}
