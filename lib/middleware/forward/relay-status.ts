import type { IncomingHttpHeaders } from 'node:http'
import { type ErrorCode, GatewayError } from '../../core/errors/index.ts'
import { type Failure, malformed } from '../../routing/attempt/failure.ts'
import { failureOfStatus } from '../../routing/attempt/outcome.ts'

/**
 * How an answer is passed on.
 *
 * - `whole`: with its body.
 * - `bare`: with its status and headers only (304, 412, 416).
 * - `error`: as an error of the gateway.
 */
export type RelayMode = 'whole' | 'bare' | 'error'

const BARE: ReadonlySet<number> = new Set([304, 412, 416])

export function relayModeOf(status: number): RelayMode {
  if (status >= 200 && status < 300) return 'whole'
  return BARE.has(status) ? 'bare' : 'error'
}

/** Statuses that are the caller's fault here, because the caller chose the path. */
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
 * Classifies an answer that is not a success. A redirect is a failure, too. Redirects, and a 403 that neither names our
 * account nor judges the content, count against nobody: the caller chose the path.
 */
export function failureOfRelayed(status: number, headers: IncomingHttpHeaders, body: unknown): Failure {
  // The upstream's text may quote the request, which was not read, so quotations cannot be removed.
  const detail = `status ${status}`
  if (status < 400) return { ...malformed(detail), retryable: false, fault: null }
  const code = CODE_BY_STATUS[status]
  const failure = failureOfStatus(status, headers, body)
  const said = failure.error && { error: failure.error }
  if (code !== undefined) return { code, retryable: false, fault: null, detail, ...said }
  if (status === 403 && failure.code === 'invalid_request')
    return { ...malformed(detail), retryable: false, fault: null, ...said }
  return { ...failure, detail }
}

/** The failure of a handshake that gets an ordinary answer. It is the caller's fault and must not open the circuit. */
export const NOT_SWITCHED: Failure = {
  code: 'invalid_request',
  retryable: false,
  fault: null,
  detail: 'did not switch protocols',
}

/** The refusal of such a handshake. */
export function noWebSocket(): GatewayError {
  return new GatewayError('invalid_request', {
    param: 'Upgrade',
    message: 'There is no WebSocket at this path. Send the request without the header Upgrade.',
  })
}
