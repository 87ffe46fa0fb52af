import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { z } from 'zod'
import { callOf } from '../call/index.ts'
import { JsonFault, parseUnambiguous, protoMembers, withoutMark } from '../json/index.ts'

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json[ \t]*(?:;|$)/i

let reader: RequestHandler | undefined

/** A middleware that parses JSON bodies. A body without a `Content-Type` counts as JSON. */
export function jsonBody(req: Request, res: Response, next: NextFunction): void {
  if (reader)
    reader(req, res, (error?: unknown) => {
      if (error) next(error)
      else parseBody(req, next)
    })
  else
    loadReader()
      .then(() => jsonBody(req, res, next))
      .catch(next)
}

/** Loads Express, which most apps have loaded already. */
async function loadReader(): Promise<void> {
  const { default: express } = await import('express')
  reader = express.raw({
    limit: 64 * 1024,
    type: ({ headers }) => JSON_TYPE.test(headers['content-type'] ?? 'application/json'),
  })
}

/** Parses the bytes of a body. Leaves a body that another parser has read. */
function parseBody(req: Request, next: NextFunction): void {
  const { body } = req as { body: unknown }
  try {
    if (Buffer.isBuffer(body)) req.body = body.length === 0 ? {} : parseUnambiguous(withoutMark(body))
  } catch (fault) {
    if (!(fault instanceof JsonFault)) next(fault)
    else next(callOf(req).refuse('invalid_request', { ...fault.named, message: fault.message }))
    return
  }
  next()
}

/**
 * Validates the body of a request.
 *
 * @throws {GatewayError} `invalid_request` with the invalid member as `param`.
 */
export function readBody<T extends z.ZodType>(req: Request, schema: T): z.output<T> {
  const [unknown] = protoMembers(req.body)
  if (unknown) throw callOf(req).refuse('invalid_request', unknownMember(unknown))
  const parsed = schema.safeParse(req.body)
  if (parsed.success) return parsed.data
  throw callOf(req).refuse('invalid_request', faultOf(parsed.error))
}

function faultOf({ issues: [issue] }: z.ZodError): { param?: string; message: string } {
  if (issue?.code === 'unrecognized_keys') {
    return unknownMember([...issue.path, issue.keys[0] ?? ''])
  }
  if (!issue || issue.path.length === 0)
    return { message: 'The body must be a JSON object, sent with "Content-Type: application/json".' }
  const param = nameOf(issue.path)
  return { param, message: `${param}: ${issue.message}.` }
}

function unknownMember(path: readonly PropertyKey[]): { param: string; message: string } {
  const param = nameOf(path)
  return { param, message: `${param} is not a known member.` }
}

function nameOf(path: readonly PropertyKey[]): string {
  return z.core.toDotPath(path).slice(0, 200)
}
