import { z } from 'zod'
import { isHeaderValue } from '../catalog/header-text.ts'
import type { LineAccount, LineCredential, LineRoute, LineTls } from '../catalog/index.ts'
import { isJsonObject } from '../json/index.ts'
import type { Parts } from './valid-parts.ts'

/** How the text begins that stands in the place of a secret that cannot be read. */
export const UNSET = 'unset:'

const oauth = z.strictObject({
  tokenUrl: z.url({ protocol: /^https?$/, error: 'must be an http(s) URL' }),
  clientId: z.string().min(1),
  clientSecret: z.string().min(1),
  scope: z.string().min(1).optional(),
})
const google = z.strictObject({
  credentials: z.string().optional().describe('"file:PATH" of credentials. Absent: those of the machine.'),
})
const aws = z.strictObject({
  region: z.string().regex(/^[a-z0-9-]+$/, 'must be a region such as "us-east-1"'),
  service: z
    .string()
    .regex(/^[a-z0-9-]+$/, 'must be the name of a service such as "bedrock"')
    .default('bedrock'),
})

const apiKey = z.union(
  [z.string().min(1), z.strictObject({ oauth }), z.strictObject({ google }), z.strictObject({ aws })],
  {
    error:
      'must be a key, or one of { "oauth": { "tokenUrl", "clientId", "clientSecret", "scope" } }, { "google": { "credentials" } }, { "aws": { "region", "service" } }',
  },
)

const proxy = z.url({ protocol: /^https?$/, error: 'must be the http(s) URL of a proxy, or false' })

/** The members of a line about its credentials, its proxy and its certificates. */
export const accessMembers = {
  apiKey: apiKey
    .optional()
    .describe('The provider key, "env:NAME", "file:PATH", or where a changing credential comes from.'),
  proxy: z
    .union([proxy, z.literal(false)], { error: 'must be the http(s) URL of a proxy, or false' })
    .optional()
    .describe('The proxy to the line. Absent: HTTPS_PROXY for https, unless NO_PROXY names the host.'),
  tls: z
    .strictObject({
      ca: z.string().optional().describe('The file of an authority that is trusted beside the others.'),
      cert: z.string().optional().describe('The file of the client certificate.'),
      key: z.string().optional().describe('The file of its key.'),
    })
    .optional()
    .describe('Certificates, as paths of PEM files.'),
}

const members = z.strictObject(accessMembers)
type ParsedAccess = z.output<typeof members>

/** Returns the faults of these members that the schema cannot find. */
export function accessFaults(at: string, { apiKey, tls }: Parts<ParsedAccess>): string[] {
  const faults: string[] = []
  if (typeof apiKey === 'string' && !isHeaderValue(apiKey))
    faults.push(`${at}.apiKey: has characters that a header cannot hold, such as a line break`)
  if (typeof apiKey === 'object' && 'google' in apiKey) {
    const { credentials } = apiKey.google ?? {}
    if (credentials !== undefined && !credentialsIn(credentials))
      faults.push(`${at}.apiKey.google.credentials: must be the "file:PATH" of credentials as JSON`)
  }
  return [...faults, ...tlsFaults(`${at}.tls`, tls ?? {})]
}

function tlsFaults(at: string, { ca, cert, key }: Parts<LineTls>): string[] {
  const given = Object.entries({ ca, cert, key }).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  )
  if (given.length === 0) return []
  // A file that cannot be read has been reported already.
  if (given.some(([, text]) => text.startsWith(UNSET))) return []
  if ((cert === undefined) !== (key === undefined)) return [`${at}: needs "cert" and "key" together`]
  const strange = given.find(([, text]) => !text.includes('-----BEGIN '))
  if (strange) return [`${at}.${strange[0]}: must be the path of a PEM file`]
  try {
    process.getBuiltinModule('node:tls').createSecureContext(Object.fromEntries(given))
    return []
  } catch (error) {
    return [`${at}: cannot be used (${(error as NodeJS.ErrnoException).code ?? 'not valid'})`]
  }
}

function credentialsIn(text: string): Readonly<Record<string, unknown>> | undefined {
  // A credential whose file cannot be read has been reported already.
  if (text.startsWith(UNSET)) return {}
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Returns the credentials, the proxy and the certificates of a line. */
export function accessOf(
  { apiKey, proxy, tls }: ParsedAccess,
  proxyOf: () => string | undefined,
): LineAccount & LineRoute {
  const credential = typeof apiKey === 'object' ? credentialOf(apiKey) : undefined
  const through = proxy === false ? undefined : (proxy ?? proxyOf())
  return {
    ...(credential && { credential }),
    ...(through !== undefined && { proxy: through }),
    ...(tls && { tls }),
  }
}

function credentialOf(given: Exclude<NonNullable<ParsedAccess['apiKey']>, string>): LineCredential {
  if ('oauth' in given) return { kind: 'oauth', ...given.oauth, scope: given.oauth.scope }
  if ('aws' in given) return { kind: 'aws', ...given.aws }
  const { credentials } = given.google
  return { kind: 'google', credentials: credentials === undefined ? undefined : credentialsIn(credentials) }
}
