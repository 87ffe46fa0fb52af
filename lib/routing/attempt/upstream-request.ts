import type { IncomingHttpHeaders } from 'node:http'
import type { CallRequest } from '../../core/call/index.ts'
import type { Line } from '../../core/catalog/index.ts'
import type { Candidate } from '../candidates/candidate.ts'
import type { SpokenRequest } from './spoken-request.ts'

/** What goes out to a line. */
export interface UpstreamRequest {
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly path: string
  /** Names and values in turn. */
  readonly headers: string[]
  readonly body: Buffer | null
}

const ANTHROPIC_VERSION = '2023-06-01'

/**
 * Builds the request for a line: only what the protocol needs. The caller's credentials, cookies, `Idempotency-Key`,
 * `X-Gateway-*`, forwarding and hop-by-hop headers stay behind because nothing is copied that is not named here.
 */
export function upstreamRequest(
  candidate: Candidate,
  { stream, resource }: CallRequest,
  spoken: SpokenRequest,
  inbound: IncomingHttpHeaders,
): UpstreamRequest {
  const { line, upstreamModel } = candidate
  const { operation, body, translation } = spoken
  const accept = stream ? 'text/event-stream' : 'application/json'
  const type = resource ? {} : { 'content-type': 'application/json' }
  // A caller of another protocol has nothing to say about this one's versions.
  const headers = lineHeaders(line, { ...type, accept }, translation ? {} : inbound)
  if (resource) return { method: resource.method, path: line.basePath + resource.path, headers, body: null }
  return {
    method: 'POST',
    path: line.basePath + operation.upstreamPath,
    headers,
    body: operation.upstreamBody(body.raw, body.json, { model: upstreamModel }),
  }
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
