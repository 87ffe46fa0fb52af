import { z } from 'zod'

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
 * const query = z.strictObject({ ...pageMembers(isRequestId), model: z.string().optional() })
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

/** The query of lists without filters. */
export const pageQuery = z.strictObject(pageMembers())

/** The query of lists that an account selects from. */
export const accountPageQuery = pageQuery.extend({
  account: z.string({ error: 'must be the id of an account, sent once' }).optional(),
})

/** Returns the schema of a page of a list. */
export function listOf<T extends z.ZodType>(row: T) {
  return z.object({
    object: z.literal('list'),
    data: z.array(row),
    next_cursor: z
      .string()
      .nullable()
      .describe('The cursor of the next page; null on the last one. A page before it may be short or empty.'),
  })
}

interface ListPage<Row> {
  readonly object: 'list'
  readonly data: readonly Row[]
  /** null on the last page. */
  readonly next_cursor: string | null
}

/** About the most bytes of a page. The first row is in the page however large it is. */
const MAX_PAGE_BYTES = 1024 * 1024

/** Describes rows, as many from the first on as a page has bytes for. */
export function fittingRows<T, Row extends object>(rows: readonly T[], describe: (row: T) => Row): Row[] {
  const data: Row[] = []
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
 * @param reached the id behind which there may be more, where the search has stopped early.
 */
export function listPage<T extends { readonly id: string }, Row extends object>(
  found: readonly T[],
  limit: number,
  describe: (row: T) => Row,
  reached?: string,
): ListPage<Row> {
  const data = fittingRows(found.slice(0, limit), describe)
  const last = data.length < found.length ? found[data.length - 1]?.id : reached
  return { object: 'list', data, next_cursor: last === undefined ? null : cursorAfter(last) }
}

/** Returns up to `limit` items behind an id, in the order of their ids. */
export function pageById<T extends { readonly id: string }>(
  items: Iterable<T>,
  limit: number,
  after = '',
): T[] {
  const behind = [...items].filter(({ id }) => id > after)
  return behind.sort((one, other) => (one.id < other.id ? -1 : 1)).slice(0, limit)
}

function cursorAfter(id: string): string {
  return Buffer.from(id).toString('base64url')
}
