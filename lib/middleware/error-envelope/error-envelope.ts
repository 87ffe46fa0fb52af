import type { Socket } from 'node:net'
import type { ErrorRequestHandler, NextFunction, Request, RequestHandler, Response } from 'express'
import { type Call, callOf, isHeldBack, type Logger } from '../../core/call/index.ts'
import { type GatewayError, isUnforeseen, toGatewayError } from '../../core/errors/index.ts'
import { endWhileUploading } from './end-while-uploading.ts'

/** Options of {@link errorEnvelope}. */
export interface ErrorEnvelopeOptions {
  /** Where unforeseen errors are logged, with their stack. Defaults to the call's logger. */
  logger?: Logger
}

/**
 * Last in the chain, and the only writer of error bodies: words any error in the envelope of the caller's protocol.
 * After the first byte there is no envelope any more: a stream ends with its protocol's error event,
 * and the connection is closed without the regular end, so that no truncated answer is taken for a whole one.
 *
 * @example
 * app.use(unknownPath(), errorEnvelope())
 */
export function errorEnvelope(options: ErrorEnvelopeOptions = {}): ErrorRequestHandler {
  return function errorEnvelope(thrown: unknown, req: Request, res: Response, _next: NextFunction): void {
    const call = callOf(req)
    const error = call.stamp(toGatewayError(thrown))
    // Another library's 5xx is foreseen by nobody here either, whatever status it came with.
    if (isUnforeseen(error) || (error !== thrown && error.status >= 500)) {
      const logger = options.logger ?? call.logger
      logger.error(
        { err: error.cause ?? error, requestId: call.id, method: call.method, path: call.path },
        'unforeseen error',
      )
    }
    // The answer was given, and only its end is still held back: it stands.
    if (isHeldBack(res)) return
    call.fail(error)
    if (res.headersSent) endBroken(res, call, error)
    else sendEnvelope(req, res, call, error)
  }
}

/**
 * Turns every request that reached the end of the chain into `not_found`: unknown paths, and known ones asked with
 * another method. Mount it behind the routes and before {@link errorEnvelope}.
 *
 * @example
 * app.use(unknownPath(), errorEnvelope())
 */
export function unknownPath(): RequestHandler {
  return function unknownPath(req: Request, _res: Response, next: NextFunction): void {
    next(callOf(req).refuse('not_found'))
  }
}

function sendEnvelope(req: Request, res: Response, call: Call, error: GatewayError): void {
  if (res.destroyed) {
    // Nobody reads it, but whoever waits for this answer's end learns that it failed.
    res.statusCode = error.status
    res.end()
    return
  }
  const body = Buffer.from(JSON.stringify(call.protocol.errorBody(error, call.id)))
  for (const name of HEADERS_OF_ANOTHER_BODY) res.removeHeader(name)
  res.statusCode = error.status
  res.statusMessage = ''
  for (const [name, value] of Object.entries(error.headers)) res.setHeader(name, value)
  res.setHeader('content-type', 'application/json; charset=utf-8')
  res.setHeader('content-length', body.length)
  const sent = req.method === 'HEAD' ? undefined : body
  if (leavesMuchUnread(req)) endWhileUploading(req, res, sent)
  else res.end(sent)
}

/** What a handler may have set for the answer that it then did not give. */
const HEADERS_OF_ANOTHER_BODY = [
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-range',
  'etag',
  'last-modified',
  'trailer',
  'transfer-encoding',
]

/** Up to here the rest of a refused body is read and thrown away, which is cheaper than a new connection. */
const MOST_DISCARDED_BYTES = 64 * 1024

/** Whether what is left of the body is not worth reading. */
function leavesMuchUnread(req: Request): boolean {
  if (req.complete) return false
  const declared = req.headers['content-length']
  if (declared === undefined) return req.headers['transfer-encoding'] !== undefined
  return !(Number(declared) <= MOST_DISCARDED_BYTES)
}

/** How long a caller may take to read the last bytes of a broken answer, in milliseconds. */
const LAST_BYTES_MS = 5000

function endBroken(res: Response, call: Call, error: GatewayError): void {
  if (res.destroyed || res.writableEnded) return
  const isEventStream = String(res.getHeader('content-type') ?? '').startsWith('text/event-stream')
  if (isEventStream) res.write(call.protocol.streamError(error, call.id, call.nextEventNumber))
  // Not res.end(): that would write the terminating chunk and make the answer look whole.
  if (res.socket) cutOff(res.socket)
  // Pipelined: queued behind another answer of the connection, which goes out whole first.
  else res.once('socket', (socket: Socket) => process.nextTick(cutOff, socket))
}

/** Closes the connection behind what has been written. */
function cutOff(socket: Socket): void {
  socket.destroySoon()
  // A caller that reads no more must not keep its call, and what that holds, open.
  const timer = setTimeout(() => socket.destroy(), LAST_BYTES_MS).unref()
  socket.once('close', () => clearTimeout(timer))
}
