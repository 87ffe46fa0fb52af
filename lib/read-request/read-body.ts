import { isUtf8 } from 'node:buffer'
import express, { type Request, type Response } from 'express'
import type { Call, RequestBody } from '../call/index.ts'
import type { GatewayError } from '../errors/index.ts'
import { receiveBody } from './receive-body.ts'

/** Hands over the body, or the error that refuses it. */
export type BodyReceiver = (error: unknown, body?: RequestBody) => void

/**
 * Makes the reader of JSON bodies: at most `limit` bytes after decompression, UTF-8, an object at its top. A body that
 * another parser has already read is taken over.
 */
export function bodyReader(
  limit: number,
): (req: Request, res: Response, call: Call, receive: BodyReceiver) => void {
  const inflate = express.raw({ type: () => true, limit })
  return function readBody(req, res, call, receive) {
    const refusal = refuseType(req, call)
    if (refusal) {
      receive(refusal)
      return
    }
    const parsed: unknown = req.body
    if (parsed !== undefined) {
      takeOver(parsed, call, receive)
      return
    }
    const encoding = req.headers['content-encoding']
    if (encoding === undefined || encoding === 'identity') {
      receiveBody(req, limit, (error, bytes) => {
        if (error) receive(error)
        else parse(bytes, call, receive)
      })
      return
    }
    inflate(req, res, (error?: unknown) => {
      if (isDecompressionFault(error)) receive(call.refuse('invalid_request', { message: BROKEN_ENCODING }))
      else if (error) receive(error)
      else parse(req.body as Buffer | undefined, call, receive)
    })
  }
}

const BROKEN_ENCODING = 'The body cannot be decompressed: it is not what Content-Encoding says, or not whole.'

/** zlib's own codes: `Z_DATA_ERROR`, `ERR__ERROR_FORMAT_…` (Brotli), `ZSTD_error_…`. */
function isDecompressionFault(error: unknown): boolean {
  const code = (error as { code?: unknown } | undefined)?.code
  return typeof code === 'string' && /^(?:Z_|ERR__|ZSTD_)/.test(code)
}

/** A JSON type, or none at all. */
const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json[ \t]*(?:;|$)/i
const FOREIGN_CHARSET = /charset[ \t]*=(?![ \t]*"?utf-?8\b)/i

function refuseType(req: Request, call: Call): GatewayError | undefined {
  const type = req.headers['content-type']
  if (type === undefined || (JSON_TYPE.test(type) && !FOREIGN_CHARSET.test(type))) return undefined
  return call.refuse('invalid_request', {
    message: 'The body must be JSON in UTF-8: send it with "Content-Type: application/json".',
  })
}

function takeOver(parsed: unknown, call: Call, receive: BodyReceiver): void {
  const raw = Buffer.isBuffer(parsed) ? parsed : bytesOf(parsed)
  if (raw) parse(raw, call, receive)
  else receive(call.refuse('invalid_request', { message: 'The request body is nested too deeply.' }))
}

/** JSON.stringify recurses and JSON.parse does not: what another parser could read may overflow here. */
function bytesOf(parsed: unknown): Buffer | undefined {
  try {
    return Buffer.from(typeof parsed === 'string' ? parsed : JSON.stringify(parsed))
  } catch {
    return undefined
  }
}

function parse(raw: Buffer | undefined, call: Call, receive: BodyReceiver): void {
  const read = readObject(raw)
  if (typeof read === 'string') receive(call.refuse('invalid_request', { message: read }))
  else receive(undefined, read)
}

/** The body, or what is wrong with it. */
function readObject(raw: Buffer | undefined): RequestBody | string {
  if (!Buffer.isBuffer(raw) || raw.length === 0) return 'The request has no body; a JSON object is needed.'
  if (!isUtf8(raw)) return 'The request body is not valid UTF-8.'
  let json: unknown
  try {
    json = JSON.parse(raw.toString())
  } catch {
    return 'The request body is not valid JSON.'
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    return 'The request body must be a JSON object.'
  return { raw, json: json as Record<string, unknown> }
}
