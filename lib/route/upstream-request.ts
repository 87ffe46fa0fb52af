import type { IncomingHttpHeaders } from 'node:http'
import type { CallRequest } from '../call/index.ts'
import type { Line } from '../catalog/index.ts'
import type { Candidate } from './candidate.ts'

/** What goes out to a line. */
export interface UpstreamRequest {
  readonly path: string
  /** Names and values in turn. */
  readonly headers: string[]
  readonly body: Buffer
}

const ANTHROPIC_VERSION = '2023-06-01'

/**
 * Builds the request for a line: only what the protocol needs. The caller's credentials, cookies, `Idempotency-Key`,
 * `X-Gateway-*`, forwarding and hop-by-hop headers stay behind because nothing is copied that is not named here.
 */
export function upstreamRequest(
  candidate: Candidate,
  request: CallRequest,
  inbound: IncomingHttpHeaders,
): UpstreamRequest {
  const { line, upstreamModel } = candidate
  const { operation, body } = request
  return {
    path: line.basePath + operation.upstreamPath,
    headers: [
      'content-type',
      'application/json',
      'accept',
      request.stream ? 'text/event-stream' : 'application/json',
      // Answers are read on their way through.
      'accept-encoding',
      'identity',
      'user-agent',
      'express-model-gateway',
      ...protocolHeaders(line, inbound),
      ...Object.entries(line.headers).flat(),
    ],
    body: operation.upstreamBody(body.raw, body.json, { model: upstreamModel }),
  }
}

function protocolHeaders(line: Line, inbound: IncomingHttpHeaders): string[] {
  if (line.protocol !== 'anthropic')
    return line.apiKey === undefined ? [] : ['authorization', `Bearer ${line.apiKey}`]
  const headers = ['anthropic-version', single(inbound['anthropic-version']) ?? ANTHROPIC_VERSION]
  const beta = single(inbound['anthropic-beta'])
  if (beta !== undefined) headers.push('anthropic-beta', beta)
  if (line.apiKey !== undefined) headers.push('x-api-key', line.apiKey)
  return headers
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(',') : value
}
