import { z } from 'zod'
import { type CallLogEntry, isRequestId } from '../call/index.ts'
import { isErrorCode } from '../errors/index.ts'

const DEFAULT_LIMIT = 20
const MOST_LIMIT = 100

const time = z
  .union([z.iso.datetime({ offset: true }), z.iso.date()], {
    error: 'must be an ISO 8601 time such as 2026-01-31T12:00:00Z (write a + as %2B)',
  })
  .transform((text) => Date.parse(text))

const modelError = 'must be one model id'
const statusError = 'must be an HTTP status'
const codeError = 'must be an error code of this service'
const cursorError = 'must be the next_cursor of a list'
const limitError = `must be a whole number from 1 to ${MOST_LIMIT}`

/** The query of a list of calls; members that it does not know are ignored. */
export const callQuerySchema = z.object({
  model: z.string({ error: modelError }).max(200, modelError).optional(),
  status: z
    .string({ error: statusError })
    .regex(/^[1-5]\d\d$/, statusError)
    .transform(Number)
    .optional(),
  code: z.string({ error: codeError }).refine(isErrorCode, { error: codeError }).optional(),
  from: time.optional(),
  to: time.optional(),
  limit: z
    .string({ error: limitError })
    .regex(/^\d{1,3}$/, limitError)
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= MOST_LIMIT, { error: limitError })
    .default(DEFAULT_LIMIT),
  cursor: z
    .string({ error: cursorError })
    .transform((text, context) => {
      const id = readCursor(text)
      if (id === undefined) context.addIssue({ code: 'custom', message: cursorError })
      return id ?? z.NEVER
    })
    .optional(),
})

/** Where the next page begins: behind this entry. */
export function cursorBehind(entry: CallLogEntry): string {
  return Buffer.from(entry.id).toString('base64url')
}

/** The id in a cursor; undefined for what {@link cursorBehind} cannot have written. */
function readCursor(cursor: string): string | undefined {
  const id = Buffer.from(cursor, 'base64url').toString('latin1')
  return isRequestId(id) && Buffer.from(id).toString('base64url') === cursor ? id : undefined
}
