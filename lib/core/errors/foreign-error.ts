import { type ErrorCode, errorRow, isErrorCode } from './codes.ts'
import { GatewayError } from './gateway-error.ts'

/** The code that stands for another library's HTTP status where the table has several rows for it. */
const CODE_BY_STATUS: Readonly<Record<number, ErrorCode>> = {
  401: 'invalid_credential',
  402: 'insufficient_balance',
  403: 'model_not_allowed',
  404: 'not_found',
  405: 'not_found',
  409: 'conflict',
  413: 'request_too_large',
  429: 'rate_limited',
  499: 'client_closed_request',
  502: 'upstream_error',
  503: 'upstream_overloaded',
  504: 'upstream_timeout',
}

/** body-parser's `type` of an error, where it says more than the status. */
const BODY_PARSER_FAULTS: ReadonlyMap<unknown, { code: ErrorCode; message?: string }> = new Map([
  ['entity.too.large', { code: 'request_too_large' }],
  ['entity.parse.failed', { code: 'invalid_request', message: 'The request body is not valid JSON.' }],
  [
    'encoding.unsupported',
    { code: 'invalid_request', message: 'The content encoding of the body is not supported.' },
  ],
  ['charset.unsupported', { code: 'invalid_request', message: 'The body must be encoded in UTF-8.' }],
  [
    'request.size.invalid',
    { code: 'invalid_request', message: 'The body is not as long as Content-Length says.' },
  ],
  ['request.aborted', { code: 'client_closed_request' }],
])

/** The row that stands for every 403 speaks of a model, which need not be true of another library's. */
const MESSAGE_BY_STATUS: Readonly<Record<number, string>> = { 403: 'This request is not allowed here.' }

interface HttpLikeError {
  status?: unknown
  statusCode?: unknown
  code?: unknown
  type?: unknown
  expose?: unknown
  message?: unknown
  headers?: unknown
}

/**
 * Turns whatever was thrown into a {@link GatewayError}: Express's and body-parser's errors and other people's
 * errors with a `status` by that status, anything else `internal_error`. The text of an error reaches the caller only
 * where its author exposed it (`expose: true`, as http-errors does below 500).
 */
export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  if (error === null || typeof error !== 'object') return new GatewayError('internal_error', { cause: error })
  const foreign = error as HttpLikeError
  const fault = BODY_PARSER_FAULTS.get(foreign.type)
  if (fault) return new GatewayError(fault.code, { message: fault.message, cause: error })
  const status = statusOf(foreign)
  if (status === undefined) return new GatewayError('internal_error', { cause: error })
  const claimed = claimedCode(status, foreign.code)
  return new GatewayError(claimed ?? codeOf(status), {
    message: exposedMessage(foreign, status) ?? (claimed ? undefined : MESSAGE_BY_STATUS[status]),
    retryAfterMs: retryAfterOf(foreign.headers),
    cause: error,
  })
}

function statusOf(error: HttpLikeError): number | undefined {
  const status = error.status ?? error.statusCode
  return typeof status === 'number' && status >= 400 && status <= 599 ? status : undefined
}

function claimedCode(status: number, claimed: unknown): ErrorCode | undefined {
  return isErrorCode(claimed) && errorRow(claimed).status === status ? claimed : undefined
}

function codeOf(status: number): ErrorCode {
  return CODE_BY_STATUS[status] ?? (status < 500 ? 'invalid_request' : 'internal_error')
}

function exposedMessage(error: HttpLikeError, status: number): string | undefined {
  if (error.expose !== true || status >= 500) return undefined
  return typeof error.message === 'string' && error.message !== '' ? error.message : undefined
}

function retryAfterOf(headers: unknown): number | undefined {
  if (headers === null || typeof headers !== 'object') return undefined
  for (const [name, value] of Object.entries(headers)) {
    if (name.toLowerCase() !== 'retry-after') continue
    const seconds = Number(value)
    if (Number.isFinite(seconds) && seconds >= 0) return seconds * 1000
  }
  return undefined
}

/** Whether an error is one that nobody foresaw, so that its stack belongs into the log. */
export function isUnforeseen(error: GatewayError): boolean {
  return error.code === 'internal_error' && !error.foreseen
}
