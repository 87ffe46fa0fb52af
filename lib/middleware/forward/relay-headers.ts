import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import type { Line } from '../../core/catalog/index.ts'
import { addProtocolHeaders } from '../../routing/attempt/upstream-request.ts'

/** What of a caller's request goes on to a line; whatever is not named here stays behind. */
const TO_UPSTREAM = [
  'accept',
  'accept-encoding',
  'accept-language',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-length',
  'content-md5',
  'content-type',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'openai-beta',
  'range',
]

/** The same of a WebSocket's handshake. */
const HANDSHAKE_TO_UPSTREAM = [
  'openai-beta',
  'sec-websocket-extensions',
  'sec-websocket-key',
  'sec-websocket-version',
]

/** What of a line's answer goes back: no cookies, no request ids or limits of its own, no names of its makers. */
const TO_CALLER = [
  'accept-ranges',
  'age',
  'cache-control',
  'content-digest',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-length',
  'content-md5',
  'content-range',
  'content-type',
  'etag',
  'expires',
  'last-modified',
  'repr-digest',
  'vary',
]

const HANDSHAKE_TO_CALLER = ['sec-websocket-accept', 'sec-websocket-extensions', 'sec-websocket-protocol']

/** Whether a request has a body. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** The caller's own headers as a line gets them. */
export function requestHeaders(req: IncomingMessage): Record<string, string> {
  const kept = pick(req.headers, TO_UPSTREAM)
  if (req.headers['transfer-encoding'] !== undefined) {
    delete kept['content-length']
    kept['transfer-encoding'] = 'chunked'
  } else if (req.method !== 'GET' && req.method !== 'HEAD') kept['content-length'] ??= '0'
  return kept
}

/** The caller's WebSocket handshake as a line gets it. */
export function handshakeHeaders(req: IncomingMessage): Record<string, string> {
  const kept = pick(req.headers, HANDSHAKE_TO_UPSTREAM)
  const subprotocols = offeredSubprotocols(req.headers).filter((name) => !TELLS_WHO_CALLS.test(name))
  if (subprotocols.length > 0) kept['sec-websocket-protocol'] = subprotocols.join(', ')
  return { ...kept, connection: 'Upgrade', upgrade: 'websocket' }
}

/** Browsers cannot set headers, so OpenAI's clients tell the key, organization and project as subprotocols. */
const TELLS_WHO_CALLS = /^openai-(?:insecure-api-key|organization|project)\./i

function offeredSubprotocols({ 'sec-websocket-protocol': offered = '' }: IncomingHttpHeaders): string[] {
  return offered
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

/** The gateway's own headers for a line, credentials among them; `extra` comes last. */
export function lineHeaders(
  line: Line,
  inbound: IncomingHttpHeaders,
  extra: Readonly<Record<string, string>>,
): Record<string, string> {
  const headers: Record<string, string> = { 'user-agent': 'express-model-gateway' }
  addProtocolHeaders(line, inbound, (name, value) => {
    headers[name] = value
  })
  return { ...headers, ...line.headers, ...extra }
}

/** A line's headers as the caller gets them. */
export function answerHeaders(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  return pick(headers, TO_CALLER)
}

/** The head of a switch of protocols as the caller gets it: the line's part of the handshake, over what is the gateway's. */
export function handshakeText(headers: IncomingHttpHeaders, own: OutgoingHttpHeaders): string {
  const all = { ...own, connection: 'Upgrade', upgrade: 'websocket', ...pick(headers, HANDSHAKE_TO_CALLER) }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${String(value)}\r\n`)
  return `HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`
}

function pick(headers: IncomingHttpHeaders, names: readonly string[]): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const name of names) {
    const value = headers[name]
    if (value !== undefined) kept[name] = Array.isArray(value) ? value.join(', ') : value
  }
  return kept
}
