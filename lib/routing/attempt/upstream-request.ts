import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import type { CallRequest } from '../../core/call/index.ts'
import type { Line } from '../../core/catalog/index.ts'
import type { Candidate } from '../candidates/candidate.ts'
import type { AdaptedRequest } from './adapted-request.ts'

const ANTHROPIC_VERSION = '2023-06-01'

/**
 * Builds the request to a line. It copies no header of the caller that is not named here, so credentials, cookies,
 * `Idempotency-Key`, `X-Gateway-*`, forwarding and hop-by-hop headers are never sent.
 */
export function upstreamRequest(
  { line, upstreamModel }: Candidate,
  { stream, resource }: CallRequest,
  { operation, body, translation }: AdaptedRequest,
  inbound: IncomingHttpHeaders,
): Dispatcher.DispatchOptions {
  // The caller's version headers mean nothing in another protocol.
  const headers = callHeaders(line, stream, resource !== undefined, translation ? {} : inbound)
  if (resource)
    return {
      method: resource.method,
      path: line.basePath + resource.path,
      headers,
      body: null,
      idempotent: false,
    }
  return {
    method: 'POST',
    path: line.basePath + operation.upstreamPath,
    headers,
    body: operation.upstreamBody(body.raw, body.json, { model: upstreamModel }),
    idempotent: false,
  }
}

/** The headers of calls without version headers; they are the same for all calls to a line. */
const commonHeaders = new WeakMap<Line, { readonly plain: string[]; readonly stream: string[] }>()

function callHeaders(line: Line, stream: boolean, bodyless: boolean, inbound: IncomingHttpHeaders): string[] {
  const names = inbound['anthropic-version'] !== undefined || inbound['anthropic-beta'] !== undefined
  if (bodyless || names) return headersOf(line, stream, bodyless, inbound)
  let known = commonHeaders.get(line)
  if (!known) {
    known = { plain: headersOf(line, false, false, {}), stream: headersOf(line, true, false, {}) }
    commonHeaders.set(line, known)
  }
  return stream ? known.stream : known.plain
}

function headersOf(line: Line, stream: boolean, bodyless: boolean, inbound: IncomingHttpHeaders): string[] {
  const accept = stream ? 'text/event-stream' : 'application/json'
  const type = bodyless ? {} : { 'content-type': 'application/json' }
  return lineHeaders(line, { ...type, accept }, inbound)
}

/**
 * Returns the headers of a request to a line as a flat list of names and values: the given ones, the credentials in
 * the form of the line's protocol, and the line's own headers, which replace others of the same name.
 */
export function lineHeaders(
  line: Line,
  given: Readonly<Record<string, string>>,
  inbound: IncomingHttpHeaders = {},
): string[] {
  const headers: string[] = []
  const add = (name: string, value: string): void => {
    if (!Object.hasOwn(line.headers, name)) headers.push(name, value)
  }
  for (const name in given) add(name, given[name] as string)
  // The gateway reads the answers.
  add('accept-encoding', 'identity')
  add('user-agent', 'express-model-gateway')
  addProtocolHeaders(line, inbound, add)
  for (const name in line.headers) headers.push(name, line.headers[name] as string)
  return headers
}

/** Adds the line's credentials and the other headers that its protocol requires. */
export function addProtocolHeaders(
  line: Line,
  inbound: IncomingHttpHeaders,
  add: (name: string, value: string) => void,
): void {
  const { apiKey } = line
  if (line.protocol !== 'anthropic') {
    if (apiKey !== undefined) add('authorization', `Bearer ${apiKey}`)
    return
  }
  add('anthropic-version', single(inbound['anthropic-version']) ?? ANTHROPIC_VERSION)
  const beta = single(inbound['anthropic-beta'])
  if (beta !== undefined) add('anthropic-beta', beta)
  if (apiKey !== undefined) add('x-api-key', apiKey)
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(',') : value
}
