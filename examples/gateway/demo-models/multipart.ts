import type { IncomingMessage } from 'node:http'
import { Fault } from './faults.ts'
import { readBytes } from './read-body.ts'

/** Reads a multipart form; throws a `Fault` if it is too large or not a form. */
export async function readForm(req: IncomingMessage, limitBytes: number): Promise<FormData> {
  const bytes = await readBytes(req, limitBytes)
  const headers = { 'content-type': req.headers['content-type'] ?? '' }
  try {
    return await new Response(new Uint8Array(bytes), { headers }).formData()
  } catch {
    throw new Fault('invalid_request', { message: 'The body is not a form.' })
  }
}

/** Returns the file of a form; throws a `Fault` if there is none. */
export function fileIn(form: FormData): File {
  const file = form.get('file')
  if (file instanceof File) return file
  throw new Fault('invalid_request', { message: 'The form has no "file".', param: 'file' })
}
