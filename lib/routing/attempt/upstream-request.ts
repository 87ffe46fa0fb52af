import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import type { CallRequest } from '../../core/call/index.ts'
import type { Line } from '../../core/catalog/index.ts'
import { editMembers } from '../../core/json/index.ts'
import { renamedForm } from '../../core/operations/index.ts'
import type { Candidate } from '../candidates/candidate.ts'
import type { AdaptedRequest } from './adapted-request.ts'
import { dialectPath, pathOn } from './upstream-path.ts'

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
  const passed = translation ? {} : inbound
  if (resource)
    return {
      method: resource.method,
      path: pathOn(line, resource.path),
      headers: headersOf(line, stream, undefined, passed),
      body: null,
      idempotent: false,
    }
  const path =
    line.paths || line.query
      ? dialectPath(line, operation, upstreamModel, stream)
      : line.basePath + operation.upstreamPath
  // A form has no raw bytes.
  if (body.raw.length === 0) {
    const { type, bytes } = renamedForm(body.json, upstreamModel, line.body)
    return {
      method: 'POST',
      path,
      headers: headersOf(line, stream, type, passed),
      body: bytes,
      idempotent: false,
    }
  }
  const own = operation.upstreamBody(body.raw, body.json, { model: upstreamModel })
  return {
    method: 'POST',
    path,
    headers: callHeaders(line, stream, passed),
    body: line.body ? editMembers(own, line.body) : own,
    idempotent: false,
  }
}

const JSON_TYPE = 'application/json'

/** The headers of calls without version headers; they are the same for all calls to a line. */
const commonHeaders = new WeakMap<Line, { readonly plain: string[]; readonly stream: string[] }>()

function callHeaders(line: Line, stream: boolean, inbound: IncomingHttpHeaders): string[] {
  const names = inbound['anthropic-version'] !== undefined || inbound['anthropic-beta'] !== undefined
  if (names) return headersOf(line, stream, JSON_TYPE, inbound)
  let known = commonHeaders.get(line)
  if (!known) {
    known = { plain: headersOf(line, false, JSON_TYPE, {}), stream: headersOf(line, true, JSON_TYPE, {}) }
    commonHeaders.set(line, known)
  }
  return stream ? known.stream : known.plain
}

/** @param type the type of the body; undefined if there is none. */
function headersOf(
  line: Line,
  stream: boolean,
  type: string | undefined,
  inbound: IncomingHttpHeaders,
): string[] {
  const accept = stream ? 'text/event-stream' : JSON_TYPE
  return lineHeaders(line, { ...(type !== undefined && { 'content-type': type }), accept }, inbound)
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
  for (const name in line.headers) {
    const value = line.headers[name] as string
    headers.push(name, name === BETA && line.protocol === 'anthropic' ? withBetas(value, inbound) : value)
  }
  return headers
}

const BETA = 'anthropic-beta'

/** Adds the caller's beta features to those of the line. */
function withBetas(own: string, inbound: IncomingHttpHeaders): string {
  const given = single(inbound[BETA]) ?? ''
  const names = [own, given].join(',').split(',')
  return [...new Set(names.map((name) => name.trim()).filter((name) => name !== ''))].join(',')
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
  const beta = single(inbound[BETA])
  if (beta !== undefined) add(BETA, beta)
  if (apiKey !== undefined) add('x-api-key', apiKey)
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(',') : value
}
