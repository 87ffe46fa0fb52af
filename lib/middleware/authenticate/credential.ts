import type { IncomingHttpHeaders } from 'node:http'

/** What a request carries as its key. */
export type Credential =
  | { readonly kind: 'missing' }
  | { readonly kind: 'unusable'; readonly why: 'ambiguous' | 'scheme' | 'console_token' | 'too_long' }
  | { readonly kind: 'key'; readonly secret: string }

const LONGEST_KEY = 512
const BEARER = /^bearer(?: +|$)/i

/** How OpenAI's clients send the key from a browser, which cannot set headers on a WebSocket. */
const KEY_SUBPROTOCOL = 'openai-insecure-api-key.'

/**
 * Reads the API key: `Authorization: Bearer <key>` or `x-api-key: <key>`, and of a WebSocket also the subprotocol
 * `openai-insecure-api-key.<key>`. Different keys are ambiguous, and a console token is recognised without asking anyone
 * (spec 5).
 */
export function readCredential(headers: IncomingHttpHeaders): Credential {
  const authorization = headers.authorization?.trim() ?? ''
  const apiKey = headerText(headers['x-api-key']).trim()
  if (authorization !== '' && !BEARER.test(authorization)) return { kind: 'unusable', why: 'scheme' }
  const bearer = authorization.replace(BEARER, '').trim()
  const given = [bearer, apiKey, ...subprotocolKeys(headers)].filter((key) => key !== '')
  const [secret] = given
  if (secret === undefined) return { kind: 'missing' }
  if (given.some((key) => key !== secret)) return { kind: 'unusable', why: 'ambiguous' }
  if (isConsoleToken(secret)) return { kind: 'unusable', why: 'console_token' }
  if (secret.length > LONGEST_KEY) return { kind: 'unusable', why: 'too_long' }
  return { kind: 'key', secret }
}

/** Only a handshake has subprotocols. */
function subprotocolKeys({ upgrade, 'sec-websocket-protocol': offered }: IncomingHttpHeaders): string[] {
  if (upgrade === undefined || offered === undefined) return NO_KEYS
  return offered
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name.startsWith(KEY_SUBPROTOCOL))
    .map((name) => name.slice(KEY_SUBPROTOCOL.length))
}

const NO_KEYS: string[] = []

function headerText(value: string | string[] | undefined): string {
  return Array.isArray(value) ? value.join(',') : (value ?? '')
}

/** Three base64url parts, the first of them a JOSE header. */
function isConsoleToken(secret: string): boolean {
  if (!/^[\w-]+\.[\w-]+\.[\w-]*$/.test(secret)) return false
  try {
    const header: unknown = JSON.parse(
      Buffer.from(secret.slice(0, secret.indexOf('.')), 'base64url').toString(),
    )
    return typeof header === 'object' && header !== null && 'alg' in header
  } catch {
    return false
  }
}
