import type { Request } from 'express'
import type { OpenCall, RequestBody } from '../../core/call/index.ts'
import { ENCODINGS, type Encoding, mostDecoded } from '../../core/content-encoding/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { isJsonObject, JsonFault, parseUnambiguous, withoutLoneSurrogates } from '../../core/json/index.ts'
import { type BodyBounds, HeldBody, memoryClaimOf, receiveBody } from '../../core/memory/index.ts'
import { MAX_BYTES_AT_ONCE, nextTurn } from '../../core/timing/index.ts'
import { isForm, readForm } from './read-form.ts'

/**
 * Reads a body: of a limited size after decompression, in UTF-8, with a JSON object at the top. If another parser has read
 * the body, its result is used.
 *
 * @param forms whether it may be a form with files.
 * @throws {GatewayError} the refusal of the body; TypeError if a middleware before has read a part of it.
 */
export async function readBody(
  req: Request,
  call: OpenCall,
  bounds: BodyBounds,
  forms: boolean,
): Promise<RequestBody> {
  const { 'content-type': type, 'content-encoding': encodingName = 'identity' } = req.headers
  const form = forms && isForm(type) ? type : undefined
  if (form === undefined) requireJsonType(type, call)
  const parsed: unknown = req.body
  if (parsed !== undefined) {
    const bytes = bytesOf(parsed, call)
    if (bytes.length > MAX_BYTES_AT_ONCE) await turnOf(call)
    return parse(bytes, call)
  }
  if (req.readableEnded || req.readableEncoding)
    throw new TypeError(req.readableEnded ? READ_BEFORE : DECODED_BEFORE)
  const encoding = encodingIn(encodingName, call)
  const received = await receiveBody(call, req, bounds)
  let { held } = received
  try {
    // Node ends no body that is shorter than announced.
    if (received.bytes.length < Number(req.headers['content-length'])) throw new TypeError(READ_BEFORE)
    let { bytes } = received
    if (encoding && bytes.length > 0) {
      held ??= new HeldBody(call, bounds.budget, () => {})
      bytes = await decompress(encoding, bytes, bounds.bodyLimitBytes, held)
    }
    // The memory still counts, but the body is no longer given up for another.
    held?.whenRefused(() => {})
    if (bytes.length > MAX_BYTES_AT_ONCE) await turnOf(call)
    return form === undefined ? parse(bytes, call) : await parseForm(form, bytes, call)
  } finally {
    held?.release()
  }
}

const READ_BEFORE =
  'readRequest: a middleware before it has read the body, or a part of it; mount readRequest before that one, and once, or let that one leave the body in req.body'
const DECODED_BEFORE =
  'readRequest: a middleware before it has called req.setEncoding(), so that the bytes of the body are lost; mount readRequest before it'

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json[ \t]*(?:;|$)/i
const FOREIGN_CHARSET = /charset[ \t]*=(?![ \t]*"?utf-?8\b)/i

/** A body without a type is taken for JSON. */
function requireJsonType(type: string | undefined, call: OpenCall): void {
  if (type === undefined || (JSON_TYPE.test(type) && !FOREIGN_CHARSET.test(type))) return
  throw call.refuse('invalid_request', {
    message: 'The body must be JSON in UTF-8: send it with "Content-Type: application/json".',
  })
}

/** Returns the encoding of a body; undefined if it has none. */
function encodingIn(header: string, call: OpenCall): Encoding | undefined {
  const name = header.toLowerCase()
  const encoding = ENCODINGS.get(name)
  if (encoding || name === 'identity') return encoding
  throw call.refuse('invalid_request', { message: 'The content encoding of the body is not supported.' })
}

/**
 * Decompresses a body off the event loop. Stops as soon as the output exceeds `limit` bytes, the budget, or
 * {@link mostDecoded} of the input.
 */
async function decompress(encoding: Encoding, bytes: Buffer, limit: number, held: HeldBody): Promise<Buffer> {
  const most = Math.min(limit, mostDecoded(bytes.length))
  const stream = encoding.decoder()
  held.whenRefused((error) => stream.destroy(error))
  stream.end(bytes)
  const pieces: Buffer[] = []
  let size = 0
  try {
    for await (const piece of stream as AsyncIterable<Buffer>) {
      size += piece.length
      if (size > most) throw new GatewayError('request_too_large')
      pieces.push(piece)
      held.count(piece.length)
    }
  } catch (cause) {
    if (cause instanceof GatewayError) throw cause
    throw new GatewayError('invalid_request', {
      message: 'The body cannot be decompressed: it is not what Content-Encoding says, or not whole.',
      cause,
    })
  }
  return Buffer.concat(pieces, size)
}

/** Returns the bytes of a body that another parser has read. */
function bytesOf(parsed: unknown, call: OpenCall): Buffer {
  if (Buffer.isBuffer(parsed)) return parsed
  try {
    return Buffer.from(typeof parsed === 'string' ? parsed : JSON.stringify(parsed))
  } catch {
    // JSON.stringify recurses, unlike JSON.parse, so it may overflow on a body that another parser could read.
    throw call.refuse('invalid_request', { message: 'The request body is nested too deeply.' })
  }
}

/** A smaller body takes less memory than its call. */
const SMALL_BYTES = 16 * 1024

function parse(raw: Buffer, call: OpenCall): RequestBody {
  try {
    if (raw.length === 0) throw new JsonFault('The request has no body; a JSON object is needed.')
    const parsed = parseUnambiguous(raw, raw.length > SMALL_BYTES ? memoryClaimOf(call, raw) : undefined)
    const json = raw.length > MAX_BYTES_AT_ONCE ? withoutLoneSurrogates(parsed) : parsed
    if (!isJsonObject(json)) throw new JsonFault('The request body must be a JSON object.')
    return { raw, json }
  } catch (fault) {
    if (!(fault instanceof JsonFault)) throw fault
    throw call.refuse('invalid_request', { ...fault.named, message: fault.message })
  }
}

/** The raw bytes are dropped: the parsed form holds the files, which need not be kept twice. */
async function parseForm(type: string, raw: Buffer, call: OpenCall): Promise<RequestBody> {
  if (raw.length === 0)
    throw call.refuse('invalid_request', { message: 'The request has no body; a form is needed.' })
  // Its files are copied.
  memoryClaimOf(call, raw, 2 * raw.length)?.(0)
  return { raw: Buffer.alloc(0), json: await readForm(type, raw) }
}

/** Waits until other accounts have had their turn. */
export async function turnOf(call: OpenCall): Promise<void> {
  await nextTurn(call.principal?.accountId)
  if (call.left) throw call.refuse('client_closed_request')
}
