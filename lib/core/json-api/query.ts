import type { Request } from 'express'
import { z } from 'zod'
import { callOf } from '../call/index.ts'
import { isTagName, isTagValue, type Tags, tagsOf } from '../catalog/index.ts'
import type { GatewayError } from '../errors/index.ts'

/** A query member that is a time or a date; milliseconds since the epoch. */
export const queryTime = z
  .union([z.iso.datetime({ offset: true }), z.iso.date()], {
    error: 'must be an ISO 8601 time such as 2026-01-31T12:00:00Z (write a + as %2B)',
  })
  .transform((text) => Date.parse(text))

/**
 * Validates the query of a request. Parameters that a plain object schema does not know are ignored; a strict one refuses them.
 *
 * @throws {GatewayError} `invalid_request` with the invalid parameter as `param`.
 */
export function readQuery<T extends z.ZodType>(req: Request, schema: T): z.output<T> {
  return parsedQuery(req, req.query, schema)
}

const TAG = 'tag:'

/** Does the same for a query that also has tags, such as `tag:team=search`. */
export function readTaggedQuery<T extends z.ZodType>(
  req: Request,
  schema: T,
): { query: z.output<T>; tags: Tags | undefined } {
  const others: Record<string, unknown> = {}
  const tags = new Map<string, string>()
  for (const [param, value] of Object.entries(req.query)) {
    const name = param.slice(TAG.length)
    if (!param.startsWith(TAG)) others[param] = value
    else if (isTagName(name) && typeof value === 'string' && isTagValue(value)) tags.set(name, value)
    else throw refusal(req, param.slice(0, 100), 'must be the name of a tag and one value')
  }
  return { query: parsedQuery(req, others, schema), tags: tags.size > 0 ? tagsOf(tags) : undefined }
}

function parsedQuery<T extends z.ZodType>(req: Request, query: unknown, schema: T): z.output<T> {
  const parsed = schema.safeParse(query)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  if (issue?.code === 'unrecognized_keys')
    throw refusal(req, String(issue.keys[0]).slice(0, 100), 'is not known here')
  throw refusal(req, String(issue?.path[0] ?? 'query'), issue?.message)
}

function refusal(req: Request, param: string, fault: string | undefined): GatewayError {
  return callOf(req).refuse('invalid_request', { param, message: `The query parameter "${param}" ${fault}.` })
}
