import type { IncomingHttpHeaders } from 'node:http'
import type { Request, Response } from 'express'
import { type AttemptNote, type Call, freeSpent } from '../../../core/call/index.ts'
import type { ErrorCode } from '../../../core/errors/index.ts'
import { setNoStore } from '../../../core/json-api/index.ts'
import { DispatchExchange, type ResponseHandler } from '../../../routing/attempt/dispatch-exchange.ts'
import { type ExchangeEnd, type Failure, malformed } from '../../../routing/attempt/failure.ts'
import { cappedWait, retryAfterOf } from '../../../routing/attempt/retry-after.ts'
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
const RESPONSE_HEADERS = ['content-length', 'content-range', 'accept-ranges', 'etag', 'last-modified']
const PASSED_ON: ReadonlySet<number> = new Set([200, 206, 304, 416])
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
  call: Call,
  downloads: Downloads,
  source: DownloadSource,
): Promise<void> {
  const callerHeaders = Object.fromEntries(REQUEST_HEADERS.flatMap((name) => headerOf(req, name)))
  const download = new Download(req, res, downloads, { ...source, callerHeaders })
  const leave = (): void => download.leave()
  source.signal.addEventListener('abort', leave)
  const release = call.hold()
  try {
    const failure = await download.run(source.note)
    if (!failure || call.left) return
    const { code, detail, retryAfterMs } = failure
    if (detail !== null)
      call.logger.warn(
        { requestId: call.id, line: source.line.id, reason: detail },
        'video: a download failed',
      )
    throw call.refuse(code, { retryAfterMs: cappedWait(retryAfterMs) })
  } finally {
    source.signal.removeEventListener('abort', leave)
    release()
  }
}

class Download implements ResponseHandler<ExchangeEnd> {
  readonly #req: Request
  readonly #res: Response
  readonly #downloads: Downloads
  readonly #target: DownloadTarget
  readonly #exchange: DispatchExchange<ExchangeEnd>
  readonly #onDrain = (): void => this.#exchange.resume()
  #at: URL | undefined
  #redirects = 0

  constructor(req: Request, res: Response, downloads: Downloads, target: DownloadTarget) {
    this.#req = req
    this.#res = res
    this.#downloads = downloads
    this.#target = target
    const { line } = target
    const { at, request, wire } = downloads.requestFor(target)
    this.#at = at
    const timeouts = { ...line.timeouts, totalMs: TOTAL_MS }
    this.#exchange = new DispatchExchange({ line, upstreamModel: null }, request, wire, Infinity, timeouts)
  }

  /** Resolves with the failure; undefined if there was none or the caller left. */
  async run(note: AttemptNote): Promise<Failure | undefined> {
    this.#res.on('drain', this.#onDrain)
    const end = await this.#exchange.run(this)
    this.#res.off('drain', this.#onDrain)
    note(this.#exchange.record)
    return end.kind === 'failed' ? end.failure : undefined
  }

  /** Ends the download, because nobody may have the rest. */
  leave(): void {
    this.#exchange.abandon()
  }

  start(status: number, headers: IncomingHttpHeaders): ExchangeEnd | undefined {
    const { location } = headers
    if (REDIRECTS.has(status) && typeof location === 'string') return this.#follow(location)
    this.#exchange.noteProgress()
    if (!PASSED_ON.has(status)) return failed(refused(status, headers))
    this.#writeHead(status, headers)
    if (this.#req.method !== 'HEAD' && status !== 304 && status !== 416) return undefined
    if (status === 416) this.#res.removeHeader('content-length')
    this.#res.end()
    return { kind: 'served' }
  }

  push(chunk: Buffer): boolean {
    if (!this.#res.write(chunk, () => freeSpent(chunk))) this.#exchange.pause()
    return false
  }

  flush(): undefined {}

  /** Ends the answer. Only a complete download does. */
  finish(): ExchangeEnd {
    this.#res.end()
    return { kind: 'served' }
  }

  breakOff(failure: Failure): ExchangeEnd {
    return failed(failure)
  }

  abandon(): ExchangeEnd {
    return { kind: 'abandoned' }
  }

  #follow(location: string): ExchangeEnd | undefined {
    if (this.#redirects++ === MAX_REDIRECTS) return failed(malformed('too many redirects'))
    const { at, request, wire } = this.#downloads.requestFor({ ...this.#target, url: location }, this.#at)
    this.#at = at
    this.#exchange.follow(request, wire)
    return undefined
  }

  #writeHead(status: number, headers: IncomingHttpHeaders): void {
    const res = this.#res
    res.status(status)
    for (const name of RESPONSE_HEADERS) {
      const value = headers[name]
      if (value !== undefined) res.setHeader(name, value)
    }
    const [given = ''] = String(headers['content-type'] ?? '').split(';')
    const type = given.trim()
    if (status !== 304) res.setHeader('content-type', MEDIA.test(type) ? type : 'application/octet-stream')
    setNoStore(res)
    res.setHeader('x-content-type-options', 'nosniff')
  }
}

function failed(failure: Failure): ExchangeEnd {
  return { kind: 'failed', failure, committed: false, elsewhere: false, lineFault: false }
}

function refused(status: number, headers: IncomingHttpHeaders): Failure {
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
