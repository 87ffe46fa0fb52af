import { phraseOf } from '../errors/client-phrases.ts'
import type { GatewayError } from '../errors/index.ts'
import type { Protocol } from './protocol.ts'

const TYPE_BY_STATUS: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
}

/** Returns the Anthropic-style error envelope. It has no code: callers branch on the status and `error.type`. */
function anthropicErrorBody(error: GatewayError, requestId: string): object {
  const type = TYPE_BY_STATUS[error.status] ?? (error.status < 500 ? 'invalid_request_error' : 'api_error')
  const { details, reason } = error
  const message = reason ? phraseOf(reason, 'anthropic') : error.message
  const shown = details?.error_code === undefined ? undefined : { details }
  return { type: 'error', error: { type, message, ...shown }, request_id: requestId }
}

/** The protocol of `/v1/messages`. Its SDK reads the request id from `request-id`. */
export const anthropic: Protocol = {
  name: 'anthropic',
  requestIdHeaders: ['x-request-id', 'request-id'],
  errorBody: anthropicErrorBody,
  streamError: (error, requestId) =>
    `event: error\ndata: ${JSON.stringify(anthropicErrorBody(error, requestId))}\n\n`,
}
