import type { IncomingHttpHeaders } from 'node:http'
import type { TimeoutPhase } from '../../core/call/index.ts'
import type { ErrorCode } from '../../core/errors/index.ts'
import { isJsonObject } from '../../core/json/index.ts'
import { upstreamWords } from './upstream-words.ts'

/** How an attempt failed, and what follows from it. */
export interface Failure {
  /** The code of the call if this were its only attempt. */
  readonly code: ErrorCode
  /** Whether another line may be tried. */
  readonly retryable: boolean
  /** Whether it counts against the line's circuit. */
  readonly blame: boolean
  /** Describes the failure for the operator. */
  readonly detail: string | null
  readonly timeoutPhase?: TimeoutPhase
  /** How long the upstream asked the gateway to wait. */
  readonly retryAfterMs?: number | undefined
  /** The member of the caller's request that the upstream objected to. */
  readonly param?: string | undefined
  /** Whether the line may lack the endpoint. */
  readonly unknownPath?: boolean
}

/** The members of an upstream's error object that decide its class, whatever the object's shape. */
interface UpstreamErrorObject {
  readonly type: string
  readonly code: string
  readonly message: string
  readonly param: string | undefined
}

const CONTEXT_CODES = new Set([
  'context_length_exceeded',
  'model_context_window_exceeded',
  'string_above_max_length',
])
const CONTEXT_TEXT =
  /context.{0,12}(?:length|window|limit)|maximum context|prompt is too long|input is too long|too many (?:input )?tokens/i
const POLICY_CODES = new Set([
  'content_policy_violation',
  'content_filter',
  'moderation_blocked',
  'responsible_ai_policy_violation',
  'image_content_policy_violation',
  'bio_policy',
  'misalignment_policy_violation',
])
/** Codes of a response or stream that fails after its request was accepted, although the request is at fault. */
const REQUEST_CODES =
  /^(?:invalid_(?:prompt|image|base64_image)|image_(?:too|parse|content|file)|empty_image|unsupported_image|failed_to_download_image)/

/** Classifies an answer with a status other than 2xx, with whatever body came along. */
export function failureOfStatus(status: number, headers: IncomingHttpHeaders, body: unknown): Failure {
  const error = errorObjectOf(body)
  const failure = classify(status, error)
  if (failure.code !== 'upstream_rate_limited') return failure
  return { ...failure, retryAfterMs: retryAfterOf(headers) ?? retryInfoOf(body) }
}

const STATUS_BY_TYPE: Readonly<Record<string, number>> = {
  overloaded_error: 529,
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  insufficient_quota: 429,
  authentication_error: 401,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  invalid_request_error: 400,
  timeout_error: 504,
  server_is_overloaded: 503,
  slow_down: 503,
}

/** Classifies an error that came with status 200, in a stream or as the answer, by its type or code. */
export function failureOfEvent(error: unknown): Failure {
  const object = errorObjectOf({ error })
  return classify(statusOfEvent(object), object)
}

function statusOfEvent({ type, code }: UpstreamErrorObject): number {
  const numeric = Number(code)
  if (numeric >= 400 && numeric <= 599) return numeric
  if (CONTEXT_CODES.has(code) || POLICY_CODES.has(code) || REQUEST_CODES.test(code)) return 400
  return STATUS_BY_TYPE[type] ?? STATUS_BY_TYPE[code] ?? 500
}

/** The failure of an answer that violates its protocol or breaks off. */
export function malformed(detail: string): Failure {
  return { code: 'upstream_error', retryable: true, blame: true, detail }
}

/** The failure of an answer whose reader threw `error`. */
export function unreadable(error: unknown): Failure {
  return malformed(faultOf(error))
}

/** Returns the message of an error that a reader of ours threw. Those of `JSON.parse` quote what it read. */
export function faultOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  return /\bJSON\b.*(?:position|input)|is not valid JSON/s.test(text)
    ? 'a part of it is not valid JSON'
    : text
}

/** The failure of an attempt one of whose clocks ran out. */
export function timedOut(phase: TimeoutPhase, afterMs: number): Failure {
  const detail = `the ${phase.replace('_', '-')} clock ran out after ${Math.round(afterMs)} ms`
  return { code: 'upstream_timeout', retryable: true, blame: true, detail, timeoutPhase: phase }
}

/** Turns a failure after the first output into a broken answer, whatever error the line sent. */
export function brokenOff(failure: Failure): Failure {
  if (failure.code === 'upstream_timeout') return { ...failure, retryable: false }
  return { ...malformed(failure.detail ?? failure.code), retryable: false }
}

/** The failure of a request for something that the line does not have, or no longer has. */
export function goneFromLine(): Failure {
  return { code: 'not_found', retryable: false, blame: false, detail: 'the line does not have it' }
}

/** The failure of an answer with status 200 and no output. */
export function emptyAnswer(): Failure {
  return { code: 'empty_completion', retryable: true, blame: false, detail: 'no output' }
}

/** The failure of an answer with status 200 that moderation stopped before any output. */
export function filteredAnswer(): Failure {
  return { code: 'content_filtered', retryable: false, blame: false, detail: 'stopped by moderation' }
}

/** An error of undici, of the operating system (with the call that failed), or of TLS. */
type ConnectionError = Error & { code?: string; syscall?: string }

/** The failure of a connection that could not be opened, or broke. */
export function connectionFailure(error: ConnectionError): Failure {
  if (error.code === 'UND_ERR_CONNECT_TIMEOUT') {
    return { ...malformed('connecting took too long'), code: 'upstream_timeout', timeoutPhase: 'connect' }
  }
  return malformed(connectionDetail(error))
}

/** Drops messages of the system and of TLS, which name the line's address: callers can read their call log. */
function connectionDetail({ code, syscall, message, name }: ConnectionError): string {
  const text = message === '' ? name : message
  if (code === undefined) return upstreamWords(text) || name
  if (syscall !== undefined) return `${code}: ${syscall}`
  return code.startsWith('UND_ERR_') || code.startsWith('HPE_') ? `${code}: ${text}` : code
}

function classify(status: number, error: UpstreamErrorObject): Failure {
  const detail = detailOf(status, error)
  const passing = { retryable: true, detail }
  const final = { retryable: false, blame: false, detail }
  if (lacksPreviousResponse(status, error)) return { ...goneFromLine(), param: 'previous_response_id' }
  if (status === 429) return { ...passing, code: 'upstream_rate_limited', blame: false }
  if (status === 503 || status === 529) return { ...passing, code: 'upstream_overloaded', blame: true }
  if (status === 504 || status === 408) return { ...passing, code: 'upstream_error', blame: true }
  if (status === 413) return { ...final, code: 'request_too_large' }
  if (status === 400 || status === 422 || rejectsInput(status, error)) {
    if (CONTEXT_CODES.has(error.code) || CONTEXT_TEXT.test(error.message))
      return { ...final, code: 'context_too_long' }
    if (POLICY_CODES.has(error.code)) return { ...final, code: 'content_filtered' }
    return { ...final, code: 'invalid_request', param: error.param }
  }
  return { ...passing, code: 'upstream_error', blame: true, unknownPath: isUnknownPath(status, error) }
}

/** Whether the upstream does not know the path or method. If it does not know the model, its error names it. */
function isUnknownPath(status: number, { type, code, message }: UpstreamErrorObject): boolean {
  return (status === 404 || status === 405) && !/model|deployment/i.test(`${type} ${code} ${message}`)
}

/** Whether the upstream does not have the previous response that the request names. */
function lacksPreviousResponse(status: number, { code, param }: UpstreamErrorObject): boolean {
  return code === 'previous_response_not_found' || (status === 404 && param === 'previous_response_id')
}

/** Whether an item of the input names another that the upstream does not have: such a 404 is not about the line. */
function rejectsInput(status: number, { param }: UpstreamErrorObject): boolean {
  return status === 404 && param === 'input'
}

/** The upstream's text for the call log, as far as it is kept. */
function detailOf(status: number, { type, code, message, param = '' }: UpstreamErrorObject): string {
  const words = [type, code, param, message].map(upstreamWords).filter((text) => text !== '' && text !== '…')
  return words.length === 0 ? `status ${status}` : [...new Set(words)].join(': ')
}

function errorObjectOf(body: unknown): UpstreamErrorObject {
  const error = isJsonObject(body) ? body.error : undefined
  const source = isJsonObject(error) ? error : isJsonObject(body) ? body : {}
  return {
    type: text(source.type),
    code: text(source.code),
    message: typeof error === 'string' ? error : text(source.message),
    param: typeof source.param === 'string' && source.param !== '' ? source.param : undefined,
  }
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : ''
}

/** The longest rest of a line, whatever its upstream asks for. */
const MAX_REST_MS = 86_400_000

/** Reads `retry-after-ms`, or else `retry-after` in seconds or as a date. */
function retryAfterOf(headers: IncomingHttpHeaders): number | undefined {
  const ms = headers['retry-after-ms']
  const exact = typeof ms === 'string' && ms.trim() !== '' ? bounded(Number(ms)) : undefined
  if (exact !== undefined) return exact
  const value = headers['retry-after']
  if (value === undefined || value.trim() === '') return undefined
  const seconds = Number(value)
  return bounded(Number.isNaN(seconds) ? Date.parse(value) - Date.now() : seconds * 1000)
}

/** Reads Google's RetryInfo: `error.details[].retryDelay: "34.4s"`. */
function retryInfoOf(body: unknown): number | undefined {
  const error = isJsonObject(body)
    ? body.error
    : Array.isArray(body) && isJsonObject(body[0])
      ? body[0].error
      : undefined
  const details = isJsonObject(error) && Array.isArray(error.details) ? error.details : []
  for (const detail of details) {
    const delay = isJsonObject(detail) ? detail.retryDelay : undefined
    if (typeof delay === 'string' && /^\d+(\.\d+)?s$/.test(delay))
      return bounded(Number.parseFloat(delay) * 1000)
  }
  return undefined
}

function bounded(ms: number): number | undefined {
  return Number.isFinite(ms) ? Math.min(MAX_REST_MS, Math.max(0, ms)) : undefined
}
