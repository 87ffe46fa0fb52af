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

/** The names, codes and messages of errors which say that a store or service is away, refuses the connection, or serves others first. */
const NO_ANSWER: ReadonlySet<unknown> = new Set([
  // Our own.
  'StoreAway',
  'DatabaseTimeout',
  // Node's about a connection.
  'ECONNABORTED',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'ENETDOWN',
  'ENETUNREACH',
  'ENOTCONN',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'EPROTO',
  'ETIMEDOUT',
  'ERR_SOCKET_CLOSED',
  'ERR_SOCKET_CONNECTION_TIMEOUT',
  'ERR_STREAM_DESTROYED',
  // Node's about a certificate.
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_REVOKED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'ERR_TLS_HANDSHAKE_TIMEOUT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  // pg's, pg-pool's and Kysely's. Their errors have no code.
  'Cannot use a pool after calling end on the pool',
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
  'Connection terminated',
  'Connection terminated due to connection timeout',
  'Connection terminated unexpectedly',
  'Query read timeout',
  'The server does not support SSL connections',
  'There was an error establishing an SSL connection',
  'driver has already been destroyed',
  'timeout exceeded when trying to connect',
  'timeout expired',
  // ioredis's, which have no code either, and that of rate-limiter-flexible.
  "Cluster isn't ready and enableOfflineQueue options is false",
  'Cluster is disconnected.',
  'Cluster is disconnecting.',
  'Cluster is ended.',
  'Command aborted due to connection close',
  'Command timed out',
  'Connection is aborted',
  'Connection is closed.',
  'Connection is discarded because a new connection is made',
  'Failed to refresh slots cache.',
  'No master node is available for the pipeline',
  'No subscriber for the cluster',
  'Node is disconnected',
  'None of startup nodes is available',
  'Redis connection is not ready',
  "Stream isn't writeable and enableOfflineQueue options is false",
])

/** The same of errors of which only the beginning is fixed. */
const NO_ANSWER_BEGINS: readonly RegExp[] = [
  // pg's about a login, and about a server that is none of Postgres.
  /^(?:SASL\b|received invalid response: )/,
  // ioredis's.
  /^(?:All sentinels are unreachable|failed to connect to sentinel|No sharded subscriber for slot)/,
  /^(?:Reached the max retries per request limit|Socket timeout\. |Too many Cluster redirections)/,
  // Redis's: it takes no writes or no logins, has no room, waits for others, or its place has changed.
  /^(?:ASK|BUSY|CLUSTERDOWN|DENIED|LOADING|MASTERDOWN|MISCONF|MOVED|NOAUTH|NOPERM|NOREPLICAS|OOM|READONLY|TRYAGAIN|UNBLOCKED|WRONGPASS|ERR max number of clients reached)\b/,
]

/**
 * The codes of Postgres, and of databases with its protocol. Of a whole class: there is no connection, no login, no room, or
 * an operator or the system has intervened. Of others: it takes no writes, has ended an idle or long transaction, has no such
 * database, served others first, or does not know whether it has committed.
 */
const POSTGRES_NO_ANSWER =
  /^(?:(?:08|28|53|57|58)[0-9A-Z]{3}|25006|25P03|25P04|3D000|40000|40001|40003|40P01|55P03)$/

/** The results of SQLite that say so: busy, read-only, a disk that fails or is full, a file that cannot be opened. */
const SQLITE_NO_ANSWER: ReadonlySet<number> = new Set([5, 8, 10, 13, 14])

/**
 * Returns the message of an error, if it says that a store or service gave no answer. A stack adds nothing to that.
 *
 * @example
 * const reason = noAnswerReason(error)
 * if (reason !== undefined) logger.warn({ reason }, 'the database is away')
 */
export function noAnswerReason(error: unknown): string | undefined {
  return saysNoAnswer(error) ? error.message : undefined
}

function saysNoAnswer(error: unknown): error is Error {
  if (!(error instanceof Error)) return false
  const { name, code, message, errcode, previousErrors } = error as StoreError
  if (typeof errcode === 'number' && SQLITE_NO_ANSWER.has(errcode & 0xff)) return true
  if (typeof code === 'string' && POSTGRES_NO_ANSWER.test(code)) return true
  if ([name, code, message].some((word) => NO_ANSWER.has(word))) return true
  if (NO_ANSWER_BEGINS.some((begins) => begins.test(message))) return true
  // A transaction of Redis says only that one of its commands was refused.
  return Array.isArray(previousErrors) && previousErrors.length > 0 && previousErrors.every(saysNoAnswer)
}

interface StoreError extends Error {
  code?: unknown
  /** Of `node:sqlite`. */
  errcode?: unknown
  /** Of ioredis. */
  previousErrors?: unknown
}
