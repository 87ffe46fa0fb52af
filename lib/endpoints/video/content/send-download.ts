import { pipeline } from 'node:stream/promises'
import type { Request, Response } from 'express'
import type { AttemptNote, OpenCall } from '../../../core/call/index.ts'
import type { ErrorCode } from '../../../core/errors/index.ts'
import { setNoStore } from '../../../core/json-api/index.ts'
import {
  type AnswerHead,
  DispatchExchange,
  type RedirectedRequest,
} from '../../../routing/attempt/dispatch-exchange.ts'
import { type AttemptEnd, type Failure, failedEnd, malformed } from '../../../routing/attempt/failure.ts'
import { cappedWait, retryAfterOf } from '../../../routing/attempt/upstream-retry-after.ts'
import type { Downloads, DownloadTarget } from './downloads.ts'

/** A file to send and the line that has it. */
export interface DownloadSource extends Omit<DownloadTarget, 'callerHeaders'> {
  /** Receives the record of the exchange. */
  readonly note: AttemptNote
  /** Aborted when the download must end: the caller has left, or its key has ended. */
  readonly signal: AbortSignal
}

const MAX_REDIRECTS = 5
/** The duration depends on the size and on the caller's connection. */
const TOTAL_MS = 3_600_000
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
/** The request headers that are passed on to the line. */
const REQUEST_HEADERS = ['range', 'if-range', 'if-none-match', 'if-modified-since']
/** The response headers that are passed on to the caller. */
const RESPONSE_HEADERS = [
  'accept-ranges',
  'content-encoding',
  'content-length',
  'content-range',
  'etag',
  'last-modified',
]
const PASSED_ON: ReadonlySet<number> = new Set([200, 206, 304, 416])
const WITHOUT_BODY: ReadonlySet<number> = new Set([304, 416])
/**
 * The media types that are passed on. SVG is not among them: a browser could run its scripts as a page of the gateway.
 */
const MEDIA = /^(?:(?:video|audio)\/[\w.+-]+|image\/(?!svg)[\w.-]+|application\/octet-stream)$/i

/**
 * Streams a file from an upstream to the caller at the caller's speed: only a few chunks are in memory, however large
 * the file is. The upstream answers ranges and conditions.
 *
 * @throws {GatewayError} if the download fails; after the first byte, the answer must be broken off.
 */
export async function sendDownload(
  req: Request,
  res: Response,
  call: OpenCall,
  downloads: Downloads,
  source: DownloadSource,
): Promise<void> {
  const { line, note, signal } = source
  const callerHeaders = Object.fromEntries(REQUEST_HEADERS.flatMap((name) => headerOf(req, name)))
  const target = { ...source, callerHeaders }
  let { at, request, transport } = downloads.requestFor(target)
  let redirects = 0
  const redirect = ({ status, headers: { location } }: AnswerHead): RedirectedRequest | undefined => {
    if (!REDIRECTS.has(status) || typeof location !== 'string') return undefined
    if (redirects++ === MAX_REDIRECTS) {
      exchange.breakOff(malformed('too many redirects'))
      return undefined
    }
    ;({ at, request, transport } = downloads.requestFor({ ...target, url: location }, at))
    return { request, transport }
  }
  const exchange = new DispatchExchange({ line, upstreamModel: null }, request, transport, Infinity, {
    timeouts: { ...line.timeouts, totalMs: TOTAL_MS },
    decodes: false,
    redirect,
  })
  const leave = (): void => exchange.abandon()
  signal.addEventListener('abort', leave)
  const release = call.hold()
  let end: AttemptEnd = { kind: 'abandoned' }
  try {
    const head = await exchange.send()
    if (head) exchange.noteProgress()
    const refusal = head && refusalOf(head)
    const broken = head && !refusal ? await relay(exchange, head, req, res, signal) : undefined
    end = refusal ? failedEnd(refusal, false) : endOf(exchange, broken)
    // Nothing of the download outlives its call.
    exchange.conclude(end)
    note(exchange.recordOf(end))
    if (call.left || signal.aborted) return
    if (end.kind === 'failed') {
      const { code, detail, retryAfterMs } = end.failure
      if (detail !== null)
        call.logger.warn({ requestId: call.id, line: line.id, reason: detail }, 'video: a download failed')
      throw call.refuse(code, { retryAfterMs: cappedWait(retryAfterMs) })
    }
    if (broken) throw broken
    res.end()
  } finally {
    exchange.conclude(end)
    signal.removeEventListener('abort', leave)
    release()
  }
}

/** Sends the head and the body, and leaves the response open. Returns the error if they could not be sent. */
async function relay(
  exchange: DispatchExchange,
  head: AnswerHead,
  { method }: Request,
  res: Response,
  signal: AbortSignal,
): Promise<Error | undefined> {
  try {
    writeHead(res, head)
    if (method === 'HEAD' || WITHOUT_BODY.has(head.status)) return undefined
    await pipeline(exchange.body, res, { end: false, signal })
    return undefined
  } catch (error) {
    return error as Error
  }
}

/** @param broken why the answer could not be sent. */
function endOf({ failure, isAbandoned, isRunning }: DispatchExchange, broken: Error | undefined): AttemptEnd {
  if (failure) return failedEnd(failure, false)
  return isAbandoned || (broken && isRunning) ? { kind: 'abandoned' } : { kind: 'served' }
}

function writeHead(res: Response, { status, headers }: AnswerHead): void {
  res.status(status)
  for (const name of RESPONSE_HEADERS) {
    const value = headers[name]
    if (value !== undefined) res.setHeader(name, value)
  }
  // The body of the line's answer is not passed on.
  if (status === 416) res.removeHeader('content-length')
  const [given = ''] = String(headers['content-type'] ?? '').split(';')
  const type = given.trim()
  if (status !== 304) res.setHeader('content-type', MEDIA.test(type) ? type : 'application/octet-stream')
  setNoStore(res)
  res.setHeader('x-content-type-options', 'nosniff')
}

/** Returns why an answer is not passed on; undefined if it is. */
function refusalOf({ status, headers }: AnswerHead): Failure | undefined {
  if (PASSED_ON.has(status)) return undefined
  const code = codeOf(status)
  const isAsked = code === 'upstream_rate_limited' || code === 'upstream_overloaded'
  const retryAfterMs = isAsked ? retryAfterOf(headers, undefined) : undefined
  return { ...malformed(''), code, detail: null, retryAfterMs }
}

function headerOf(req: Request, name: string): [string, string][] {
  const value = req.headers[name]
  return typeof value === 'string' ? [[name, value]] : []
}

/** Returns the code for a status of the line. An expired address or a deleted file is `not_found`. */
function codeOf(status: number): ErrorCode {
  if (status === 404 || status === 410) return 'not_found'
  if (status === 429) return 'upstream_rate_limited'
  return status === 503 ? 'upstream_overloaded' : 'upstream_error'
}
