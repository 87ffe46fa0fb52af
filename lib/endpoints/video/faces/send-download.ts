import type { Request, Response } from 'express'
import { type AttemptNote, type Call, freeSpent } from '../../../core/call/index.ts'
import type { Line } from '../../../core/catalog/index.ts'
import { type ErrorCode, GatewayError } from '../../../core/errors/index.ts'
import type { Download, Downloads } from '../lines/download.ts'
import { codeFor, DownloadAttempt, reasonOf } from './download-attempt.ts'

/** What is sent, and of which line. */
export interface DownloadSource {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly line: Line
  /** Is told how it went. */
  readonly note: AttemptNote
}

/** What a caller may ask of a file. */
const ASKED = ['range', 'if-range', 'if-none-match', 'if-modified-since']
/** What is told of it. */
const TOLD = ['content-length', 'content-range', 'accept-ranges', 'etag', 'last-modified']
const PASSED_ON: ReadonlySet<number> = new Set([200, 206, 304, 416])
/** A browser that opens it must not take it for a page of the gateway, which an image in SVG can be. */
const MEDIA = /^(?:(?:video|audio)\/[\w.+-]+|image\/(?!svg)[\w.-]+|application\/octet-stream)$/i

/**
 * Sends what an upstream has, as fast as the caller takes it and no faster: memory holds a few chunks, however large it
 * is. Ranges and conditions are the upstream's to answer. It ends with the caller.
 *
 * @throws {GatewayError} what went wrong; after the first byte the answer is to be broken off.
 */
export async function sendDownload(
  req: Request,
  res: Response,
  call: Call,
  downloads: Downloads,
  source: DownloadSource,
): Promise<void> {
  const leaving = new AbortController()
  const forget = call.onLeave(() => leaving.abort())
  const release = call.hold()
  const attempt = new DownloadAttempt(source.line)
  try {
    const asked = Object.fromEntries(ASKED.flatMap((name) => headerOf(req, name)))
    const download = await downloads.open({ ...source, asked }, leaving.signal)
    attempt.begun(download.status)
    if (!PASSED_ON.has(download.status)) {
      download.body.on('error', () => {}).destroy()
      throw call.refuse(codeOf(download.status))
    }
    writeHead(res, download)
    await writeBody(req, res, download)
    source.note(attempt.record(call.left ? 'abandoned' : 'completed'))
  } catch (error) {
    const code = codeFor(error)
    source.note(attempt.record(call.left ? 'abandoned' : code, error))
    if (!call.left) throw errorFor(call, error, code, source.line)
  } finally {
    forget()
    release()
  }
}

function headerOf(req: Request, name: string): [string, string][] {
  const value = req.headers[name]
  return typeof value === 'string' ? [[name, value]] : []
}

function writeHead(res: Response, { status, headers }: Download): void {
  res.status(status)
  for (const name of TOLD) {
    const value = headers[name]
    if (value !== undefined) res.setHeader(name, value)
  }
  const type =
    String(headers['content-type'] ?? '')
      .split(';')[0]
      ?.trim() ?? ''
  if (status !== 304) res.setHeader('content-type', MEDIA.test(type) ? type : 'application/octet-stream')
  res.setHeader('cache-control', 'private, no-store')
  res.setHeader('x-content-type-options', 'nosniff')
}

async function writeBody(req: Request, res: Response, { status, body }: Download): Promise<void> {
  if (req.method === 'HEAD' || status === 304 || status === 416) {
    body.on('error', () => {}).destroy()
    if (status === 416) res.removeHeader('content-length')
    res.end()
    return
  }
  await relay(body, res)
}

/** Passes on what comes, and stops reading while the caller does not. The regular end is written, and no other. */
function relay(body: Download['body'], res: Response): Promise<void> {
  return new Promise((resolve, reject) => {
    const resume = (): void => void body.resume()
    res.on('drain', resume)
    // The upstream is left by then: see the signal.
    res.once('close', resolve)
    body.on('data', (chunk: Buffer) => {
      if (!res.write(chunk, () => freeSpent(chunk))) body.pause()
    })
    body.once('end', () => {
      res.end()
      resolve()
    })
    body.once('error', (error) => {
      res.off('drain', resume)
      reject(error)
    })
  })
}

/** An address that is good no more, or a file that the line has deleted, is one that does not exist. */
function codeOf(status: number): ErrorCode {
  if (status === 404 || status === 410) return 'not_found'
  if (status === 429) return 'upstream_rate_limited'
  return status === 503 ? 'upstream_overloaded' : 'upstream_error'
}

/** What the caller is told; the address, and what is wrong with it, stays here. */
function errorFor(call: Call, error: unknown, code: ErrorCode, { id: line }: Line): unknown {
  if (error instanceof GatewayError) return error
  call.logger.warn({ requestId: call.id, line, reason: reasonOf(error) }, 'video: a download failed')
  return call.refuse(code)
}
