import { AsyncResource } from 'node:async_hooks'
import type { IncomingMessage } from 'node:http'
import type { Request } from 'express'
import { type BudgetBounds, HeldBody, takingBody } from '../../core/body-budget/index.ts'
import type { Call, RequestBody } from '../../core/call/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { isJsonObject, JsonFault, parseUnambiguous, withoutLoneSurrogates } from '../../core/json/index.ts'
import { MAX_BYTES_AT_ONCE, takeTurn } from '../../core/turns/index.ts'
import { type Decompressor, decompress, decompressorOf } from './decompress.ts'
import { isForm, readForm } from './read-form.ts'

/** Receives the body, or the error that refuses it. */
export type BodyReceiver = (error: unknown, body?: RequestBody) => void

/** Reads a body. `forms` says whether it may be a form with files. */
export type BodyReader = (req: Request, call: Call, forms: boolean, receive: BodyReceiver) => void

/**
 * Returns a reader of bodies: at most `limit` bytes after decompression, in UTF-8, with a JSON object at the top. If
 * another parser has read the body, its result is used.
 *
 * @param bounds those of unfinished bodies.
 */
export function bodyReader(limit: number, bounds: BudgetBounds): BodyReader {
  return readBody

  function readBody(...[req, call, forms, receive]: Parameters<BodyReader>): void {
    const { 'content-type': type, 'content-encoding': encoding } = req.headers
    const form = forms && isForm(type) ? type : undefined
    const refusal = form === undefined && type !== 'application/json' ? refuseType(type, call) : undefined
    if (refusal) {
      receive(refusal)
      return
    }
    const taken: unknown = req.body
    if (taken !== undefined) {
      reuseParsed(taken, call, receive)
      return
    }
    if (req.readableEnded || req.readableEncoding) {
      receive(new TypeError(req.readableEnded ? READ_BEFORE : DECODED_BEFORE))
      return
    }
    const decompressor = encoding ? decompressorOf(encoding) : null
    if (decompressor === undefined) {
      receive(
        call.refuse('invalid_request', { message: 'The content encoding of the body is not supported.' }),
      )
      return
    }
    const declared = Number(req.headers['content-length'])
    const mayBeThere = declared <= Math.min(limit, SMALL_BYTES) && req.readableFlowing === null
    if (mayBeThere && !decompressor) void RESOLVED.then(() => takeSmall(req, declared, form, call, receive))
    else listen(req, decompressor, form, call, receive)
  }

  /** Takes a small body, which mostly comes in one packet with its head. */
  function takeSmall(
    req: IncomingMessage,
    declared: number,
    form: string | undefined,
    call: Call,
    receive: BodyReceiver,
  ): void {
    const bytes: Buffer | null = req.read()
    if (bytes?.length === declared) {
      // So that the request ends for whoever waits for that.
      req.resume()
      parse(bytes, form, call, receive)
    } else if (req.destroyed) receive(new GatewayError('client_closed_request'))
    else {
      if (bytes) req.unshift(bytes)
      listen(req, null, form, call, receive)
    }
  }

  function listen(
    req: IncomingMessage,
    decompressor: Decompressor,
    form: string | undefined,
    call: Call,
    receive: BodyReceiver,
  ): void {
    // Bodies come with events of the connection, which know nothing of the app's AsyncLocalStorage.
    const context = new AsyncResource('readRequest')
    const take: HeldReceiver = (error, bytes, held) => {
      if (error) receive(error)
      else if (decompressor && bytes?.length) {
        const holding = held ?? new HeldBody(call, bounds, receive)
        decompress(decompressor, bytes, limit, holding, (fault, whole) => {
          if (fault) releasing(holding, receive)(fault)
          else parse(whole, form, call, releasing(holding, receive))
        })
      } else parse(bytes, form, call, held ? releasing(held, receive) : receive)
    }
    receiveBody(req, call, limit, bounds, context.runInAsyncScope.bind(context, take as Runnable, null))
  }
}

const READ_BEFORE =
  'readRequest: a middleware before it has read the body, or a part of it; mount readRequest before that one, and once, or let that one leave the body in req.body'
const DECODED_BEFORE =
  'readRequest: a middleware before it has called req.setEncoding(), so that the bytes of the body are lost; mount readRequest before it'

/** What waits for it runs when the packet has been read; `process.nextTick` would take twice the memory. */
const RESOLVED = Promise.resolve()

/** Node has read as much of a body when it is first asked for. */
const SMALL_BYTES = 16 * 1024

/** As `bind` of a method with type parameters needs it. */
type Runnable = (...given: unknown[]) => void

/** Returns a receiver that first gives back the memory of what was received. */
function releasing(held: HeldBody, receive: BodyReceiver): BodyReceiver {
  held.whenRefused(() => {})
  return (error, body) => {
    held.release()
    receive(error, body)
  }
}

/** Receives the bytes of a body, and the memory that is counted for them until it is released. */
type HeldReceiver = (error: unknown, bytes?: Buffer, held?: HeldBody) => void

/**
 * Collects the raw bytes of a body. A body over `limit` bytes is refused at once by its `Content-Length`, or as soon
 * as it exceeds the limit. If the caller leaves before the end, the error is `client_closed_request`.
 */
function receiveBody(
  req: IncomingMessage,
  call: Call,
  limit: number,
  bounds: BudgetBounds,
  receive: HeldReceiver,
): void {
  const declared = Number(req.headers['content-length'] ?? limit)
  if (declared > limit) {
    receive(new GatewayError('request_too_large'))
    return
  }
  /** A body that came in one piece, as most do. It is never held. */
  let single: Buffer | undefined
  let held: HeldBody | undefined
  let size = 0
  // The listeners are not removed: removing four of them costs more than letting them ignore later events.
  let done = false
  const onData = (chunk: Buffer): void => {
    if (done) return
    size += chunk.length
    if (size > limit) {
      done = true
      held?.release()
      req.pause()
      receive(new GatewayError('request_too_large'))
    } else if (chunk.length === declared || (size === chunk.length && req.complete)) single = chunk
    else {
      held ??= new HeldBody(call, bounds, (error) => {
        done = true
        req.pause()
        receive(error)
      })
      if (single) held.add(single, declared)
      single = undefined
      held.add(chunk, declared)
    }
  }
  const onEnd = (): void => {
    if (done) return
    done = true
    // Node ends no body that is shorter than announced.
    if (size < Number(req.headers['content-length'])) {
      held?.release()
      receive(new TypeError(READ_BEFORE))
    } else receive(undefined, held ? held.bytes : single, held)
  }
  const onBroken = (cause?: Error): void => {
    if (done) return
    done = true
    held?.release()
    receive(new GatewayError('client_closed_request', { cause }))
  }
  req.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken)
}

/** A JSON type, or none at all. */
const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json[ \t]*(?:;|$)/i
const FOREIGN_CHARSET = /charset[ \t]*=(?![ \t]*"?utf-?8\b)/i

function refuseType(type: string | undefined, call: Call): GatewayError | undefined {
  if (type === undefined || (JSON_TYPE.test(type) && !FOREIGN_CHARSET.test(type))) return undefined
  return call.refuse('invalid_request', {
    message: 'The body must be JSON in UTF-8: send it with "Content-Type: application/json".',
  })
}

/** The raw bytes are dropped: the parsed form holds the files, which need not be kept twice. */
function parseForm(type: string, whole: Buffer | undefined, call: Call, receive: BodyReceiver): void {
  if (!whole?.length) {
    receive(call.refuse('invalid_request', { message: 'The request has no body; a form is needed.' }))
    return
  }
  try {
    // Its files are copied.
    takingBody(call, whole, 2 * whole.length)?.(0)
  } catch (refusal) {
    receive(refusal)
    return
  }
  readForm(type, whole, (error, json) => {
    if (json) receive(undefined, { raw: Buffer.alloc(0), json })
    else receive(error)
  })
}

function reuseParsed(parsed: unknown, call: Call, receive: BodyReceiver): void {
  const raw = Buffer.isBuffer(parsed) ? parsed : bytesOf(parsed)
  if (raw) parse(raw, undefined, call, receive)
  else receive(call.refuse('invalid_request', { message: 'The request body is nested too deeply.' }))
}

/** JSON.stringify recurses, unlike JSON.parse, so it may overflow on a body that another parser could read. */
function bytesOf(parsed: unknown): Buffer | undefined {
  try {
    return Buffer.from(typeof parsed === 'string' ? parsed : JSON.stringify(parsed))
  } catch {
    return undefined
  }
}

/** Parses a large body in its turn. It is a function of its own, because its closure would take memory for each small body. */
function parseInTurn(raw: Buffer, form: string | undefined, call: Call, receive: BodyReceiver): void {
  takeTurn(call.principal?.accountId, () => {
    if (call.left) receive(call.refuse('client_closed_request'))
    else parse(raw, form, call, receive, true)
  })
}

/**
 * @param form the content type of a form; undefined for JSON.
 * @param inTurn whether a large body may be read now.
 */
function parse(
  raw: Buffer | undefined,
  form: string | undefined,
  call: Call,
  receive: BodyReceiver,
  inTurn = false,
): void {
  if (raw && raw.length > MAX_BYTES_AT_ONCE && !inTurn) {
    parseInTurn(raw, form, call, receive)
    return
  }
  if (form !== undefined) {
    parseForm(form, raw, call, receive)
    return
  }
  let json: unknown
  try {
    if (!raw?.length) throw new JsonFault('The request has no body; a JSON object is needed.')
    const parsed = parseUnambiguous(raw, raw.length > SMALL_BYTES ? takingBody(call, raw) : undefined)
    json = raw.length > MAX_BYTES_AT_ONCE ? withoutLoneSurrogates(parsed, raw) : parsed
    if (!isJsonObject(json)) throw new JsonFault('The request body must be a JSON object.')
  } catch (fault) {
    if (fault instanceof GatewayError) receive(fault)
    else if (!(fault instanceof JsonFault)) throw fault
    else receive(call.refuse('invalid_request', { ...fault.named, message: fault.message }))
    return
  }
  receive(undefined, { raw, json })
}
