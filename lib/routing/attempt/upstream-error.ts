import type { IncomingHttpHeaders } from 'node:http'
import { isJsonObject, isText, type JsonObject, nonEmptyString, parseJson } from '../../core/json/index.ts'

/** An upstream's error object, whatever its shape. */
export interface UpstreamError {
  readonly type: string
  readonly code: string
  readonly message: string
  readonly param: string | undefined
  /** The HTTP status that the object names; undefined if it names none. */
  readonly status: number | undefined
  /** The tokens that it counted and the most that it takes, if they are members of their own, as llama.cpp has them. */
  readonly counted?: { readonly input: number; readonly limit: number } | undefined
}

/** Parses the body of an error. Some upstreams answer a call for a stream with one, whatever its status is. */
export function parseErrorBody(text: string): unknown {
  return parseJson(text) ?? parseJson(/^data:(.*)/m.exec(text)?.[1] ?? '')
}

/**
 * Returns the error object of a body. A body without one gives empty members.
 *
 * @param headers those of the answer: AWS names the type there.
 */
export function errorIn(body: unknown, headers: IncomingHttpHeaders = {}): UpstreamError {
  const holder = holderIn(body)
  const source = sourceIn(holder)
  const inner = isJsonObject(source.innererror) ? source.innererror : {}
  const nested = nestedIn(source)
  const faults = faultsIn(source)
  const message = messageIn(holder, source) || faults.message
  return {
    type: typeIn(holder, source) || faults.type || text(headers['x-amzn-errortype']).replace(/:.*/s, ''),
    code: text(source.code) || text(inner.code) || text(detailsIn(source).error_code),
    message: nested?.message ? text(`${message}: ${nested.message}`) : message,
    param: nonEmpty(source.param) ?? faults.param ?? nested?.param,
    status: statusIn(source) ?? (holder !== source ? statusIn(holder) : undefined),
    counted: countedIn(source),
  }
}

const NO_MEMBERS: JsonObject = {}

/** Anthropic names the faults of threads there. */
function detailsIn({ details }: JsonObject): JsonObject {
  return isJsonObject(details) ? details : NO_MEMBERS
}

function countedIn({ n_prompt_tokens: input, n_ctx: limit }: JsonObject): UpstreamError['counted'] {
  const isCounted = Number.isSafeInteger(input) && Number.isSafeInteger(limit)
  return isCounted ? { input: input as number, limit: limit as number } : undefined
}

/** Gemini wraps the body in a list. */
function holderIn(body: unknown): JsonObject {
  const holder: unknown = Array.isArray(body) ? body[0] : body
  return isJsonObject(holder) ? holder : NO_MEMBERS
}

/** Returns the object with the error's members: that of `error`, the first of `errors`, that of `detail`, or the body. */
function sourceIn(holder: JsonObject): JsonObject {
  const { error, errors, detail, message } = holder
  if (isJsonObject(error)) return error
  const first: unknown = Array.isArray(errors) ? errors[0] : undefined
  if (isJsonObject(first)) return first
  if (isJsonObject(detail)) return detail
  // Mistral's message can be the object.
  return isJsonObject(message) ? { ...holder, ...message } : holder
}

function messageIn(
  { error }: JsonObject,
  { message, Message, detail, msg, error_message }: JsonObject,
): string {
  if (typeof error === 'string') return text(error)
  for (const value of [message, Message, detail, msg, error_message])
    if (typeof value === 'string') return text(value)
  return ''
}

/** AWS prefixes the type with a name space; others name it beside a text. */
function typeIn({ error_type: beside }: JsonObject, { type, status, __type: aws }: JsonObject): string {
  return text(type) || text(status) || text(aws).replace(/^.*#/s, '') || text(beside)
}

/** Reads the first of a list of faults, as FastAPI (`detail`) and Google (`details[].fieldViolations`) send it. */
function faultsIn({ detail, details }: JsonObject): {
  type: string
  message: string
  param: string | undefined
} {
  const first: unknown = Array.isArray(detail) ? detail[0] : undefined
  if (isJsonObject(first)) {
    const place: unknown[] = Array.isArray(first.loc) ? first.loc.filter((part) => part !== 'body') : []
    return { type: text(first.type), message: text(first.msg), param: nonEmpty(place.join('.')) }
  }
  for (const one of Array.isArray(details) ? details : []) {
    const violation: unknown =
      isJsonObject(one) && Array.isArray(one.fieldViolations) ? one.fieldViolations[0] : undefined
    if (isJsonObject(violation)) return { type: '', message: '', param: nonEmpty(violation.field) }
  }
  return { type: '', message: typeof first === 'string' ? text(first) : '', param: undefined }
}

/** Reads the error of the provider behind a hosted router, which is a text in `metadata.raw`. */
function nestedIn({ metadata }: JsonObject): UpstreamError | undefined {
  const raw = isJsonObject(metadata) ? metadata.raw : undefined
  if (typeof raw !== 'string') return undefined
  const body = raw.length > MAX_RAW_LENGTH ? undefined : parseJson(raw)
  return isJsonObject(body) && !isJsonObject(sourceIn(body).metadata) ? errorIn(body) : undefined
}

const MAX_RAW_LENGTH = 16_000

/**
 * Returns the body of an answer if an error stands in place of the answer; undefined if none does. Upstreams send it
 * as a member `error`, or as an object that says that it is one.
 */
export function errorInPlaceOf(body: unknown): unknown {
  const holder = Array.isArray(body) ? body[0] : body
  if (!isJsonObject(holder)) return undefined
  const { error, type, object } = holder
  if ((isJsonObject(error) && Object.keys(error).length > 0) || isText(error)) return holder
  return type === 'error' || object === 'error' ? holder : undefined
}

/** The members in which upstreams name a status. */
const STATUS_MEMBERS = ['status', 'status_code', 'http_status', 'http_code', 'code'] as const

function statusIn(source: Readonly<Record<string, unknown>>): number | undefined {
  for (const member of STATUS_MEMBERS) {
    const value = source[member]
    const status = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
    if (typeof status === 'number' && status >= 400 && status <= 599) return status
  }
  return undefined
}

/** A longer text is cut: it is searched for words. */
const MAX_TEXT_LENGTH = 4000

function text(value: unknown): string {
  return typeof value === 'string'
    ? value.slice(0, MAX_TEXT_LENGTH).toWellFormed()
    : typeof value === 'number'
      ? String(value)
      : ''
}

function nonEmpty(value: unknown): string | undefined {
  return nonEmptyString(value)?.slice(0, MAX_TEXT_LENGTH).toWellFormed()
}
