import type { IncomingMessage } from 'node:http'
import { Fault } from './faults.ts'
import type { JsonObject } from './prompt.ts'
import { asObject } from './prompt.ts'

/** Reads a request's JSON object; throws a `Fault` if it is over the limit or no JSON object. */
export async function readBody(req: IncomingMessage, limitBytes: number): Promise<JsonObject> {
  return parse((await readBytes(req, limitBytes)).toString('utf8'))
}

/** The same of a request that may be a form, whose files are `File`s. */
export async function readJsonOrForm(req: IncomingMessage, limitBytes: number): Promise<JsonObject> {
  const type = req.headers['content-type'] ?? ''
  const bytes = await readBytes(req, limitBytes)
  if (!type.startsWith('multipart/form-data')) return parse(bytes.toString('utf8'))
  try {
    const form = await new Response(new Uint8Array(bytes), { headers: { 'content-type': type } }).formData()
    return Object.fromEntries(form)
  } catch {
    throw new Fault('invalid_request', { message: 'The body is not a form.' })
  }
}

/**
 * The rest of a body over the limit is read and thrown away: a connection closed on a caller that still sends would lose
 * the answer.
 */
async function readBytes(req: IncomingMessage, limitBytes: number): Promise<Buffer> {
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
