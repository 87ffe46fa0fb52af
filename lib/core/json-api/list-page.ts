import type { Request } from 'express'
import { z } from 'zod'
import { callOf } from '../call/index.ts'

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100
const MAX_CURSOR_LENGTH = 1000

const limitError = `must be a whole number from 1 to ${MAX_LIMIT}`
const cursorError = 'must be the next_cursor of a list'

/** The query member `limit`. */
const limit = z
  .string({ error: limitError })
  .regex(/^\d{1,3}$/, limitError)
  .transform(Number)
  .refine((count) => count >= 1 && count <= MAX_LIMIT, { error: limitError })
  .default(DEFAULT_LIMIT)

/**
 * Returns the query members that all lists have: `limit` and `cursor`.
 *
 * @param isId whether a text has the form of an id; a cursor with any other text is refused.
 * @example
 * const query = z.object({ ...pageMembers(isRequestId), model: z.string().optional() })
 */
export function pageMembers(isId: (text: string) => boolean = (text) => text !== '') {
  const cursor = z
    .string({ error: cursorError })
    .max(MAX_CURSOR_LENGTH, cursorError)
    .transform((text, context) => {
      const id = Buffer.from(text, 'base64url').toString()
      if (isId(id) && cursorAfter(id) === text) return id
      context.addIssue({ code: 'custom', message: cursorError })
      return z.NEVER
    })
    .optional()
  return { limit, cursor }
}

/**
 * Validates the query of a request. Parameters that the schema does not know are ignored.
 *
 * @throws {GatewayError} `invalid_request` with the invalid parameter as `param`.
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

/** The body of a list. */
interface ListPage {
  readonly object: 'list'
  readonly data: readonly object[]
  /** null on the last page. */
  readonly next_cursor: string | null
}

/** About the most bytes of a page. The first row is in the page however large it is. */
const MAX_PAGE_BYTES = 1024 * 1024

/** Describes rows, as many from the first on as a page has bytes for. */
export function fitting<T>(rows: readonly T[], describe: (row: T) => object): object[] {
  const data: object[] = []
  let bytes = 0
  for (const row of rows) {
    const described = describe(row)
    bytes += Buffer.byteLength(JSON.stringify(described))
    if (bytes > MAX_PAGE_BYTES && data.length > 0) break
    data.push(described)
  }
  return data
}

/**
 * Returns one page of a list whose rows are ordered by id: up to `limit` rows, and fewer if they are large.
 *
 * @param found up to `limit` + 1 rows; the last one shows that there is a next page.
 */
export function listPage<T extends { readonly id: string }>(
  found: readonly T[],
  limit: number,
  describe: (row: T) => object,
): ListPage {
  const data = fitting(found.slice(0, limit), describe)
  const last = data.length < found.length ? found[data.length - 1] : undefined
  return { object: 'list', data, next_cursor: last ? cursorAfter(last.id) : null }
}

function cursorAfter(id: string): string {
  return Buffer.from(id).toString('base64url')
}
