import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import type { Line } from '../../core/catalog/index.ts'
import { isEventStream } from '../../core/protocols/index.ts'
import { addProtocolHeaders } from '../../routing/attempt/upstream-request.ts'

/** The headers of a caller's request that are sent to a line; all others are dropped. */
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

/** The headers of a WebSocket handshake that are sent to a line. */
const HANDSHAKE_TO_UPSTREAM = [
  'openai-beta',
  'sec-websocket-extensions',
  'sec-websocket-key',
  'sec-websocket-version',
]

/** The headers of a line's answer that the caller gets. Cookies, request ids, limits and vendor names are dropped. */
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

export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/** Returns the headers of a request that are sent to a line. */
export function requestHeaders(req: IncomingMessage): Record<string, string> {
  const kept = pick(req.headers, TO_UPSTREAM)
  if (req.headers['transfer-encoding'] !== undefined) {
    delete kept['content-length']
    kept['transfer-encoding'] = 'chunked'
  } else if (req.method !== 'GET' && req.method !== 'HEAD') kept['content-length'] ??= '0'
  return kept
}

/** Returns the headers of a handshake that are sent to a line. */
export function handshakeHeaders(req: IncomingMessage): Record<string, string> {
  const kept = pick(req.headers, HANDSHAKE_TO_UPSTREAM)
  const subprotocols = offeredSubprotocols(req.headers).filter((name) => !CREDENTIAL_SUBPROTOCOL.test(name))
  if (subprotocols.length > 0) kept['sec-websocket-protocol'] = subprotocols.join(', ')
  return { ...kept, connection: 'Upgrade', upgrade: 'websocket' }
}

/** OpenAI's browser clients send key, organization and project as subprotocols, because browsers cannot set headers. */
const CREDENTIAL_SUBPROTOCOL = /^openai-(?:insecure-api-key|organization|project)\./i

function offeredSubprotocols({ 'sec-websocket-protocol': offered = '' }: IncomingHttpHeaders): string[] {
  return offered
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
}

/** Returns the headers that the gateway adds for a line, with its credentials. `extra` takes precedence. */
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

/** Returns the headers of a line's answer that are sent to the caller. */
export function answerHeaders(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  const kept = pick(headers, TO_CALLER)
  // A middleware that compresses would keep the events until the last one.
  if (isEventStream(kept['content-type']))
    kept['cache-control'] = kept['cache-control'] ? `${kept['cache-control']}, no-transform` : 'no-transform'
  return kept
}

/** Fits the headers of an answer to a body that is not sent as the line sent it. */
export function describeRead(headers: OutgoingHttpHeaders, body: Buffer): void {
  for (const name of ['content-digest', 'content-encoding', 'content-md5', 'etag', 'repr-digest'])
    delete headers[name]
  headers['content-length'] = String(body.length)
}

/** Fits the headers of an answer to a body that is not passed on. */
export function describeNone(headers: OutgoingHttpHeaders, status: number): void {
  for (const name of ['content-encoding', 'content-length', 'content-type']) delete headers[name]
  if (status !== 304) headers['content-length'] = '0'
}

/** Returns the head of a 101 answer to the caller. The line's headers take precedence over the gateway's. */
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
