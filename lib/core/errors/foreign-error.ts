import { type ErrorCode, errorRow, isErrorCode } from './codes.ts'
import { GatewayError } from './gateway-error.ts'

/** The code for another library's HTTP status. */
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

/** The codes for body-parser's error types. */
const BODY_PARSER_ERRORS: ReadonlyMap<unknown, { code: ErrorCode; message?: string }> = new Map([
  ['entity.too.large', { code: 'request_too_large' }],
  ['entity.parse.failed', { code: 'invalid_request', message: 'The request body is not valid JSON.' }],
  [
    'encoding.unsupported',
    { code: 'invalid_request', message: 'The content encoding of the body is not supported.' },
  ],
  ['charset.unsupported', { code: 'invalid_request', message: 'The body must be encoded in UTF-8.' }],
  ['request.aborted', { code: 'client_closed_request' }],
])

const READ_BEFORE =
  'a middleware before the body parser, such as readRequest, has read the body; mount one of them only, or the parser first'

/** Replaces the table's message for 403, which is about models. */
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
 * Converts any thrown value to a {@link GatewayError}. Errors with a `status`, such as those of Express and body-parser,
 * get a code by that status; all others become `internal_error`. The caller sees the message of an error only if it has
 * `expose: true`, which http-errors sets below 500.
 */
export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  if (error === null || typeof error !== 'object') return new GatewayError('internal_error', { cause: error })
  const foreign = error as HttpLikeError
  // Node itself ends no body that is shorter than announced.
  if (foreign.type === 'request.size.invalid') {
    const cause = new Error(READ_BEFORE, { cause: error })
    return new GatewayError('internal_error', { cause })
  }
  const fault = BODY_PARSER_ERRORS.get(foreign.type)
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

/** Whether an error is unexpected, so that it is logged with its stack. */
export function isUnforeseen(error: GatewayError): boolean {
  return error.code === 'internal_error' && !error.foreseen
}

/**
 * The names of our errors about a store, the codes of Node about a connection, those of Postgres that say that it cannot serve
 * now or serves others first, and what pg and pg-pool say of a connection.
 */
const NO_ANSWER: ReadonlySet<unknown> = new Set([
  'StoreAway',
  'DatabaseTimeout',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
  // Certificates.
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  // It takes no writes, has no room or no connections left, is going down or not up yet, or refuses the login.
  '25006',
  '53100',
  '53200',
  '53300',
  '57P01',
  '57P02',
  '57P03',
  '28000',
  '28P01',
  // Others had what the statement needed for too long.
  '40001',
  '40P01',
  '55P03',
  '57014',
  'Connection terminated unexpectedly',
  'Connection terminated due to connection timeout',
  'timeout exceeded when trying to connect',
])

/** The results of SQLite that say so: busy, read-only, a disk that fails or is full, a file that cannot be opened. */
const SQLITE_NO_ANSWER: ReadonlySet<number> = new Set([5, 8, 10, 13, 14])

/** Returns what an error says, if it is that a store or service gave no answer. A stack adds nothing to that. */
export function noAnswerReason(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const { name, code, message, errcode } = error as Error & { code?: unknown; errcode?: unknown }
  if (typeof errcode === 'number' && SQLITE_NO_ANSWER.has(errcode & 0xff)) return message
  return [name, code, message].some((word) => NO_ANSWER.has(word)) ? message : undefined
}
