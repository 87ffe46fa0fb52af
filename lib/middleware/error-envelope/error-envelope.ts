import type { Socket } from 'node:net'
import type { ErrorRequestHandler, NextFunction, Request, RequestHandler, Response } from 'express'
import {
  callOf,
  isHeldBack,
  type Logger,
  noteEnvelope,
  noteEnvelopeUsed,
  type OpenCall,
  prepareEnvelope,
  quietLogger,
  unfiltered,
} from '../../core/call/index.ts'
import { type GatewayError, isUnforeseen, noAnswerReason, toGatewayError } from '../../core/errors/index.ts'
import { aLogger, checkOptions } from '../../core/options/index.ts'
import { endWhileUploading, KNOWN_CALLER, UNKNOWN_CALLER } from './end-while-uploading.ts'

/** Options of {@link errorEnvelope}. */
export interface ErrorEnvelopeOptions {
  /** Logs unforeseen errors with their stack, and requests that a store did not answer. Defaults to the call's logger. */
  logger?: Logger
}

/**
 * Writes any error in the envelope of the caller's protocol. Mount it last; no other middleware writes error bodies.
 * After the first byte a stream ends with its protocol's error event, and the connection is closed without a regular
 * end, so that no client takes a truncated answer for a complete one.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * app.use(unknownPath(), errorEnvelope())
 */
export function errorEnvelope(options: ErrorEnvelopeOptions = {}): ErrorRequestHandler {
  checkOptions('errorEnvelope', options, { logger: aLogger })
  const own = options.logger && quietLogger(options.logger)
  const handler: ErrorRequestHandler = function errorEnvelope(thrown, req, res, _next): void {
    noteEnvelopeUsed(handler)
    const call = callOf(req)
    const error = call.stamp(toGatewayError(thrown))
    // A 5xx of another library is unforeseen, too, whatever its status.
    if (isUnforeseen(error) || (error !== thrown && error.status >= 500)) {
      const logger = own ?? call.logger
      const cause = error.cause ?? error
      const about = { requestId: call.id, method: call.method, path: call.shortPath }
      const reason = noAnswerReason(cause)
      if (reason === undefined) logger.error({ err: cause, ...about }, 'unforeseen error')
      else logger.warn({ reason, ...about }, 'a request failed because a store gave no answer')
    }
    // The answer was complete, and only its end is held back, so it stands.
    if (isHeldBack(res)) return
    call.fail(error)
    if (!res.headersSent) sendEnvelope(req, res, call, error)
    else {
      const waiting = call.prepareLastByte()
      if (waiting) void waiting.then(() => endBroken(res, call, error))
      else endBroken(res, call, error)
    }
  }
  noteEnvelope(handler)
  return handler
}

/**
 * Refuses every request that reaches it with `not_found`: unknown paths, and known paths with another method. Mount
 * it after the routes and before {@link errorEnvelope}. It has no options.
 *
 * @example
 * app.use(unknownPath(), errorEnvelope())
 */
export function unknownPath(options: Record<string, never> = {}): RequestHandler {
  checkOptions('unknownPath', options, {})
  return function unknownPath(req: Request, _res: Response, next: NextFunction): void {
    next(callOf(req).refuse('not_found'))
  }
}

function sendEnvelope(req: Request, res: Response, call: OpenCall, error: GatewayError): void {
  // The error follows, which no guard holds back.
  unfiltered(res, () => writeEnvelope(req, res, call, error))
}

function writeEnvelope(req: Request, res: Response, call: OpenCall, error: GatewayError): void {
  const body = prepareEnvelope(res, call, error)
  const sent = req.method === 'HEAD' ? undefined : body
  // Where the caller has left nobody reads it, but `idempotency` keeps it for a repetition.
  if (res.destroyed || !leavesMuchUnread(req)) res.end(sent)
  else endWhileUploading(req, res, sent, isUploading(req, call, error) ? KNOWN_CALLER : UNKNOWN_CALLER)
}

/** Whether a caller with a valid key is sending its body, rather than waiting for a 100. */
function isUploading(req: Request, call: OpenCall, error: GatewayError): boolean {
  return hasValidKey(call, error) && (req.headers.expect === undefined || req.readableDidRead)
}

/** Whether the caller showed a key that may be used. The principal is known even if its key is refused. */
function hasValidKey({ principal }: OpenCall, { status }: GatewayError): boolean {
  return principal !== null && status !== 401 && status !== 403
}

/** The rest of a refused body is read and discarded up to this size, which is cheaper than a new connection. */
const MAX_DISCARDED_BYTES = 64 * 1024

/**
 * Whether the rest of the body is too long to discard. One of a caller that waits for a 100 may not come at all, so that
 * its connection has to be closed.
 */
function leavesMuchUnread(req: Request): boolean {
  if (req.complete) return false
  if (req.headers.expect !== undefined) return true
  const declared = req.headers['content-length']
  if (declared === undefined) return req.headers['transfer-encoding'] !== undefined
  return !(Number(declared) <= MAX_DISCARDED_BYTES)
}

/** How long a caller may take to read the last bytes of a broken answer, in milliseconds. */
const LAST_BYTES_MS = 5000

function endBroken(res: Response, call: OpenCall, error: GatewayError): void {
  if (res.destroyed || res.writableEnded) return
  const isEventStream = String(res.getHeader('content-type') ?? '').startsWith('text/event-stream')
  if (isEventStream)
    unfiltered(res, () => res.write(call.protocol.streamError(error, call.id, call.nextEventNumber)))
  const close = isEventStream || !endsWithConnection(res) ? cutOff : reset
  // Not res.end(): that would write the terminating chunk and make the answer look whole.
  if (res.socket) close(res.socket)
  // Pipelined: another answer of the connection goes out first.
  else res.once('socket', (socket: Socket) => process.nextTick(close, socket))
}

/** Whether the end of the connection is the regular end of an answer, as in HTTP/1.0. */
function endsWithConnection(res: Response): boolean {
  return res.req.httpVersion === '1.0' && !res.hasHeader('content-length')
}

/** Closes the connection with an error. TLS has none: a connection that ends without its last message is taken for broken. */
function reset(socket: Socket): void {
  if ('encrypted' in socket) socket.destroy()
  else socket.resetAndDestroy()
}

/** Closes the connection after the bytes already written. */
function cutOff(socket: Socket): void {
  socket.destroySoon()
  // A caller that stops reading must not keep its call open.
  const timer = setTimeout(() => socket.destroy(), LAST_BYTES_MS).unref()
  socket.once('close', () => clearTimeout(timer))
}
