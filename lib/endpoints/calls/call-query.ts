import { z } from 'zod'
import { isRequestId } from '../../core/call/index.ts'
import { isErrorCode } from '../../core/errors/index.ts'
import { pageMembers } from '../../core/json-api/index.ts'

const time = z
  .union([z.iso.datetime({ offset: true }), z.iso.date()], {
    error: 'must be an ISO 8601 time such as 2026-01-31T12:00:00Z (write a + as %2B)',
  })
  .transform((text) => Date.parse(text))

const modelError = 'must be one model id'
const statusError = 'must be an HTTP status'
const codeError = 'must be an error code of this service'

/** The query of the list of an account's calls. */
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
  ...pageMembers(isRequestId),
})

/** The query of the list of all accounts' calls. */
export const allCallsQuerySchema = callQuerySchema.extend({
  account: z.string({ error: 'must be the id of an account, sent once' }).optional(),
})
