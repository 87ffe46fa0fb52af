import type { Request } from 'express'
import { z } from 'zod'
import { callOf } from '../call/index.ts'

const DEFAULT_LIMIT = 20
const MOST_LIMIT = 100
const LONGEST_CURSOR = 1000

const limitError = `must be a whole number from 1 to ${MOST_LIMIT}`
const cursorError = 'must be the next_cursor of a list'

const pageSchema = z.object({
  limit: z
    .string({ error: limitError })
    .regex(/^\d{1,3}$/, limitError)
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= MOST_LIMIT, { error: limitError })
    .default(DEFAULT_LIMIT),
  cursor: z
    .string({ error: cursorError })
    .max(LONGEST_CURSOR, cursorError)
    .transform((text, context) => {
      const id = Buffer.from(text, 'base64url').toString()
      if (id !== '' && cursorBehind(id) === text) return id
      context.addIssue({ code: 'custom', message: cursorError })
      return z.NEVER
    })
    .optional(),
})

/** Which part of a list is asked for. */
export interface PageQuery {
  readonly limit: number
  /** The id behind which the page begins. */
  readonly after: string | undefined
}

/**
 * Reads `limit` and `cursor` of a list; parameters that it does not know are ignored.
 *
 * @throws {GatewayError} `invalid_request`, `param` naming the parameter.
 */
export function readPageQuery(req: Request): PageQuery {
  const parsed = pageSchema.safeParse(req.query)
  if (parsed.success) return { limit: parsed.data.limit, after: parsed.data.cursor }
  const issue = parsed.error.issues[0]
  const param = String(issue?.path[0] ?? 'query')
  throw callOf(req).refuse('invalid_request', {
    param,
    message: `The query parameter "${param}" ${issue?.message}.`,
  })
}

/** A page of a list whose rows are in the order of their ids; the one row beyond `limit` tells that there are more. */
export function listPage<T extends { readonly id: string }>(
  found: readonly T[],
  { limit }: PageQuery,
  describe: (row: T) => object,
) {
  const rows = found.slice(0, limit)
  const last = found.length > limit ? rows.at(-1) : undefined
  return { object: 'list', data: rows.map(describe), next_cursor: last ? cursorBehind(last.id) : null }
}

function cursorBehind(id: string): string {
  return Buffer.from(id).toString('base64url')
}
