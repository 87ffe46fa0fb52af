import { hash } from 'node:crypto'
import type { RequestHandler } from 'express'

/** Answers with a document whose bytes and tag are made once, however often it is asked for. */
export function ofMemory(document: object): RequestHandler {
  const body = Buffer.from(JSON.stringify(document))
  const etag = `"${hash('sha256', body)}"`
  return (_req, res) => void res.set('etag', etag).type('json').send(body)
}
