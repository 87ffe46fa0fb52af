import type { IncomingHttpHeaders } from 'node:http'

/** The credential of a request. */
export type Credential =
  | { readonly kind: 'missing' }
  | { readonly kind: 'unusable'; readonly why: 'ambiguous' | 'scheme' | 'console_token' | 'too_long' }
  | { readonly kind: 'key'; readonly secret: string }

const MAX_KEY_LENGTH = 512
const BEARER = /^bearer(?: +|$)/i

/** OpenAI's browser clients send the key in this subprotocol, because browsers cannot set headers on a WebSocket. */
const KEY_SUBPROTOCOL = 'openai-insecure-api-key.'

/**
 * Reads the API key from `Authorization: Bearer <key>`, `x-api-key`, `api-key` (Azure's clients) or `x-goog-api-key`
 * (Google's), or for a WebSocket from the subprotocol `openai-insecure-api-key.<key>`. Different keys are ambiguous. A
 * console token is recognised without a look-up.
 */
export function readCredential(headers: IncomingHttpHeaders): Credential {
  const authorization = headers.authorization?.trim() ?? ''
  if (authorization !== '' && !BEARER.test(authorization)) return { kind: 'unusable', why: 'scheme' }
  const bearer = authorization.slice('bearer'.length).trim()
  const { 'x-api-key': apiKey, 'api-key': azureKey, 'x-goog-api-key': googleKey, upgrade } = headers
  const isBearerOnly = (apiKey ?? azureKey ?? googleKey ?? upgrade) === undefined
  const others = isBearerOnly ? NO_KEYS : otherKeys(headers)
  const secret = bearer || others[0]
  if (!secret) return { kind: 'missing' }
  for (const key of others) if (key !== secret) return { kind: 'unusable', why: 'ambiguous' }
  if (secret.includes('.') && isConsoleToken(secret)) return { kind: 'unusable', why: 'console_token' }
  if (secret.length > MAX_KEY_LENGTH) return { kind: 'unusable', why: 'too_long' }
  return { kind: 'key', secret }
}

const NO_KEYS: readonly string[] = []

const KEY_HEADERS = ['x-api-key', 'api-key', 'x-goog-api-key']

/** Returns the keys outside `Authorization`. Only a WebSocket handshake has subprotocols. */
function otherKeys(headers: IncomingHttpHeaders): readonly string[] {
  const { upgrade, 'sec-websocket-protocol': offered } = headers
  const keys = KEY_HEADERS.map((name) => String(headers[name] ?? '').trim())
  for (const name of upgrade === undefined ? [] : (offered ?? '').split(',')) {
    const subprotocol = name.trim()
    if (subprotocol.startsWith(KEY_SUBPROTOCOL)) keys.push(subprotocol.slice(KEY_SUBPROTOCOL.length))
  }
  return keys.filter((key) => key !== '')
}

/** Whether a secret is a JWT: three base64url parts, the first of them a JOSE header. */
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
