import type { IncomingMessage } from 'node:http'
import { Fault } from './faults.ts'
import { asObject, type JsonObject } from './prompt.ts'

/** Reads the JSON object of a request; throws a `Fault` if it is over the limit or not a JSON object. */
export async function readBody(req: IncomingMessage, limitBytes: number): Promise<JsonObject> {
  return parse((await readBytes(req, limitBytes)).toString('utf8'))
}

/**
 * Reads the bytes of a request; throws a `Fault` if it is over the limit. The rest of a body over the limit is read and
 * discarded: if the connection closed while the caller still sends, the caller would miss the answer.
 */
export async function readBytes(req: IncomingMessage, limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of req as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes <= limitBytes) chunks.push(chunk)
    else chunks.length = 0
  }
  if (bytes > limitBytes) {
    throw new Fault('too_large', { message: `The body is over the limit of ${limitBytes} bytes.` })
  }
  return Buffer.concat(chunks)
}

function parse(text: string): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new Fault('invalid_request', { message: `The body is not JSON: ${(cause as Error).message}` })
  }
  const body = asObject(value)
  if (body === undefined) throw new Fault('invalid_request', { message: 'The body is not a JSON object.' })
  return body
}
