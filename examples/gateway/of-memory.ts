import { hash } from 'node:crypto'
import type { RequestHandler } from 'express'

/** Answers with a document, which is made when somebody first asks for it: its bytes and its tag then stay. */
export function ofMemory(make: () => object): RequestHandler {
  let made: { readonly body: Buffer; readonly etag: string } | undefined
  return (_req, res) => {
    made ??= bytesOf(make())
    res.set('etag', made.etag).type('json').send(made.body)
  }
}

function bytesOf(document: object): { readonly body: Buffer; readonly etag: string } {
  const body = Buffer.from(JSON.stringify(document))
  return { body, etag: `"${hash('sha256', body)}"` }
}
