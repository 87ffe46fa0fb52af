import type { Request } from 'express'
import { z } from 'zod'
import { callOf } from '../call/index.ts'

const DEFAULT_LIMIT = 20
const MOST_LIMIT = 100
const LONGEST_CURSOR = 1000

const limitError = `must be a whole number from 1 to ${MOST_LIMIT}`
const cursorError = 'must be the next_cursor of a list'

/** The member `limit` of a list's query. */
const limit = z
  .string({ error: limitError })
  .regex(/^\d{1,3}$/, limitError)
  .transform(Number)
  .refine((count) => count >= 1 && count <= MOST_LIMIT, { error: limitError })
  .default(DEFAULT_LIMIT)

/**
 * The members that the query of every list has.
 *
 * @param isId what can be the id of a row at all; a cursor that holds anything else was not made by {@link listPage}.
 * @example
 * const query = z.object({ ...pageMembers(isRequestId), model: z.string().optional() })
 */
export function pageMembers(isId: (text: string) => boolean = (text) => text !== '') {
  const cursor = z
    .string({ error: cursorError })
    .max(LONGEST_CURSOR, cursorError)
    .transform((text, context) => {
      const id = Buffer.from(text, 'base64url').toString()
      if (isId(id) && cursorBehind(id) === text) return id
      context.addIssue({ code: 'custom', message: cursorError })
      return z.NEVER
    })
    .optional()
  return { limit, cursor }
}

/**
 * Reads the query of a request; parameters that the schema does not know are ignored.
 *
 * @throws {GatewayError} `invalid_request`, `param` naming the parameter.
 */
export function readQuery<T extends z.ZodType>(req: Request, schema: T): z.output<T> {
  const parsed = schema.safeParse(req.query)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  const param = String(issue?.path[0] ?? 'query')
  throw callOf(req).refuse('invalid_request', {
    param,
    message: `The query parameter "${param}" ${issue?.message}.`,
  })
}

/** A list as it is answered. */
interface ListPage {
  readonly object: 'list'
  readonly data: readonly object[]
  /** null on the last page. */
  readonly next_cursor: string | null
}

/**
 * One page of a list whose rows are in the order of their ids.
 *
 * @param found up to one row more than `limit`: it tells that there are more.
 */
export function listPage<T extends { readonly id: string }>(
  found: readonly T[],
  limit: number,
  describe: (row: T) => object,
): ListPage {
  const rows = found.slice(0, limit)
  const last = found.length > limit ? rows.at(-1) : undefined
  return { object: 'list', data: rows.map(describe), next_cursor: last ? cursorBehind(last.id) : null }
}

function cursorBehind(id: string): string {
  return Buffer.from(id).toString('base64url')
}
