import type { IncomingMessage } from 'node:http'
import { Fault } from './faults.ts'

/** Reads a multipart form; throws a `Fault` if it is over the limit or no form. */
export async function readForm(req: IncomingMessage, limitBytes: number): Promise<FormData> {
  const chunks: Buffer<ArrayBuffer>[] = []
  let bytes = 0
  for await (const chunk of req as AsyncIterable<Buffer<ArrayBuffer>>) {
    bytes += chunk.length
    if (bytes <= limitBytes) chunks.push(chunk)
    else chunks.length = 0
  }
  if (bytes > limitBytes) {
    throw new Fault('too_large', { message: `The form is over the limit of ${limitBytes} bytes.` })
  }
  const headers = { 'content-type': req.headers['content-type'] ?? '' }
  try {
    return await new Response(Buffer.concat(chunks), { headers }).formData()
  } catch {
    throw new Fault('invalid_request', { message: 'The body is no multipart form.' })
  }
}

/** The file of a form; throws a `Fault` without one. */
export function fileIn(form: FormData): File {
  const file = form.get('file')
  if (file instanceof File) return file
  throw new Fault('invalid_request', { message: 'The form has no "file".', param: 'file' })
}
