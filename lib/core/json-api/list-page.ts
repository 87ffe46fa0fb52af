import type { Request } from 'express'
import { z } from 'zod'
import { callOf } from '../call/index.ts'
import { isTagName, isTagValue, type Tags, tagsOf } from '../catalog/index.ts'
import type { GatewayError } from '../errors/index.ts'

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
 * @param reached the id behind which there may be more, where the search has stopped early.
 */
export function listPage<T extends { readonly id: string }>(
  found: readonly T[],
  limit: number,
  describe: (row: T) => object,
  reached?: string,
): ListPage {
  const data = fitting(found.slice(0, limit), describe)
  const last = data.length < found.length ? found[data.length - 1]?.id : reached
  return { object: 'list', data, next_cursor: last === undefined ? null : cursorAfter(last) }
}

function cursorAfter(id: string): string {
  return Buffer.from(id).toString('base64url')
}
