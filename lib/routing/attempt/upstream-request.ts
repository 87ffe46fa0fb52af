import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import type { CallRequest } from '../../core/call/index.ts'
import type { Line } from '../../core/catalog/index.ts'
import type { Candidate } from '../candidates/candidate.ts'
import type { AdaptedRequest } from './adapted-request.ts'

const ANTHROPIC_VERSION = '2023-06-01'

/**
 * Builds the request for a line: only what the protocol needs. The caller's credentials, cookies, `Idempotency-Key`,
 * `X-Gateway-*`, forwarding and hop-by-hop headers stay behind because nothing is copied that is not named here.
 */
export function upstreamRequest(
  { line, upstreamModel }: Candidate,
  { stream, resource }: CallRequest,
  { operation, body, translation }: AdaptedRequest,
  inbound: IncomingHttpHeaders,
): Dispatcher.DispatchOptions {
  // A caller of another protocol has nothing to say about this one's versions.
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

/** The usual headers of calls to a line, which are the same for all of them. */
const usual = new WeakMap<Line, { readonly plain: string[]; readonly stream: string[] }>()

function callHeaders(line: Line, stream: boolean, bodyless: boolean, inbound: IncomingHttpHeaders): string[] {
  const names = inbound['anthropic-version'] !== undefined || inbound['anthropic-beta'] !== undefined
  if (bodyless || names) return headersOf(line, stream, bodyless, inbound)
  let known = usual.get(line)
  if (!known) {
    known = { plain: headersOf(line, false, false, {}), stream: headersOf(line, true, false, {}) }
    usual.set(line, known)
  }
  return stream ? known.stream : known.plain
}

function headersOf(line: Line, stream: boolean, bodyless: boolean, inbound: IncomingHttpHeaders): string[] {
  const accept = stream ? 'text/event-stream' : 'application/json'
  const type = bodyless ? {} : { 'content-type': 'application/json' }
  return lineHeaders(line, { ...type, accept }, inbound)
}

/**
 * The headers of a request to a line, names and values in turn: those given, the credentials that its protocol wants,
 * and the line's own, which stand in place of others of the same name.
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
  // Answers are read on their way through.
  add('accept-encoding', 'identity')
  add('user-agent', 'express-model-gateway')
  addProtocolHeaders(line, inbound, add)
  for (const name in line.headers) headers.push(name, line.headers[name] as string)
  return headers
}

/** Adds the line's own credentials, and what else every request of its protocol carries. */
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
