import type { IncomingHttpHeaders } from 'node:http'
import { type ErrorCode, GatewayError } from '../../core/errors/index.ts'
import { type Failure, failureOfStatus, malformed } from '../../routing/attempt/outcome.ts'

/**
 * How an answer is passed on.
 *
 * - `whole`: with its body.
 * - `bare`: its status and headers, no body: not modified, precondition failed, no such range.
 * - `error`: as an error of the gateway's own.
 */
export type RelayManner = 'whole' | 'bare' | 'error'

const BARE: ReadonlySet<number> = new Set([304, 412, 416])

export function mannerOf(status: number): RelayManner {
  if (status >= 200 && status < 300) return 'whole'
  return BARE.has(status) ? 'bare' : 'error'
}

/** What a path that the caller chose can be answered with, where a model's own endpoint cannot. */
const CODE_BY_STATUS: Readonly<Record<number, ErrorCode>> = {
  404: 'not_found',
  405: 'not_found',
  409: 'conflict',
  410: 'not_found',
  411: 'invalid_request',
  414: 'invalid_request',
  415: 'invalid_request',
  428: 'invalid_request',
  431: 'invalid_request',
}

/**
 * Reads an answer that is not a success. A redirect is none either: it names a place that is the line's own affair. Of
 * that, and of a 403, the line is not to blame: the caller chose the path, and would open the circuit for all others.
 */
export function failureOfRelayed(status: number, headers: IncomingHttpHeaders, body: unknown): Failure {
  // Its words may quote the request, and nobody has read that to find out.
  const detail = `status ${status}`
  if (status < 400 || status === 403) return { ...malformed(detail), retryable: false, blame: false }
  const code = CODE_BY_STATUS[status]
  if (code !== undefined) return { code, retryable: false, blame: false, detail }
  return { ...failureOfStatus(status, headers, body), detail }
}

/** An ordinary answer to a WebSocket's handshake: the caller's mistake, which must not open the circuit for all others. */
export const NOT_SWITCHED: Failure = {
  code: 'invalid_request',
  retryable: false,
  blame: false,
  detail: 'did not switch protocols',
}

/** What the caller is told of it. */
export function noWebSocket(): GatewayError {
  return new GatewayError('invalid_request', {
    param: 'Upgrade',
    message: 'There is no WebSocket at this path. Send the request without the header Upgrade.',
  })
}
