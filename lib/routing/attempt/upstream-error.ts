import { isJsonObject } from '../../core/json/index.ts'

/** The members of an upstream's error object that decide its class, whatever the object's shape. */
export interface UpstreamError {
  readonly type: string
  readonly code: string
  readonly message: string
  readonly param: string | undefined
  /** The HTTP status that the object names; undefined if it names none. */
  readonly status: number | undefined
}

/** Returns the error object of a body. A body without one gives empty members. */
export function errorIn(body: unknown): UpstreamError {
  const holder = Array.isArray(body) ? body[0] : body
  const error = isJsonObject(holder) ? holder.error : undefined
  const source = isJsonObject(error) ? error : isJsonObject(holder) ? holder : {}
  const inner = isJsonObject(source.innererror) ? source.innererror : {}
  return {
    type: text(source.type) || text(source.status),
    code: text(source.code) || text(inner.code),
    message: typeof error === 'string' ? text(error) : text(source.message) || text(source.detail),
    param: typeof source.param === 'string' && source.param !== '' ? source.param : undefined,
    status: statusIn(source) ?? (isJsonObject(holder) && holder !== source ? statusIn(holder) : undefined),
  }
}

/**
 * Returns the body of an answer if an error stands in place of the answer; undefined if none does. Upstreams send it
 * as a member `error`, or as an object that says that it is one.
 */
export function errorInPlaceOf(body: unknown): unknown {
  const holder = Array.isArray(body) ? body[0] : body
  if (!isJsonObject(holder)) return undefined
  const { error, type, object } = holder
  if ((isJsonObject(error) && Object.keys(error).length > 0) || (typeof error === 'string' && error !== ''))
    return holder
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
    ? value.slice(0, MAX_TEXT_LENGTH)
    : typeof value === 'number'
      ? String(value)
      : ''
}
