import type { ServerResponse } from 'node:http'
import type { GatewayError } from '../errors/index.ts'
import type { Protocol } from '../protocols/index.ts'

/** The parts of a call that the answer of an error needs. */
interface Refused {
  readonly id: string
  readonly protocol: Protocol
  stamp(error: GatewayError): GatewayError
  fail(error: GatewayError): void
}

/** Headers that a handler may have set for the answer that it did not send. */
const STALE_HEADERS = [
  'accept-ranges',
  'cache-control',
  'content-digest',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-location',
  'content-range',
  'etag',
  'expires',
  'last-modified',
  'location',
  'repr-digest',
  'trailer',
  'transfer-encoding',
]

/** Prepares the head of an answer that is an error, and returns its body. Nothing of the answer may have been sent. */
export function prepareEnvelope(res: ServerResponse, call: Refused, error: GatewayError): Buffer {
  const body = Buffer.from(JSON.stringify(call.protocol.errorBody(error, call.id)))
  for (const name of STALE_HEADERS) res.removeHeader(name)
  res.statusCode = error.status
  res.statusMessage = ''
  for (const [name, value] of Object.entries(error.headers)) res.setHeader(name, value)
  res.setHeader('content-type', 'application/json; charset=utf-8')
  res.setHeader('content-length', body.length)
  return body
}

/** Refuses a call outside an app's chain, where no `errorEnvelope` writes its answer, and closes the connection behind it. */
export function writeRefusal(res: ServerResponse, call: Refused, refusal: GatewayError): void {
  const error = call.stamp(refusal)
  call.fail(error)
  const body = prepareEnvelope(res, call, error)
  res.setHeader('connection', 'close')
  res.end(res.req.method === 'HEAD' ? undefined : body)
}
