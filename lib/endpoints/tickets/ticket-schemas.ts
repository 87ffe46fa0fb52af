import { z } from 'zod'
import { isRequestId } from '../../core/call/index.ts'
import { WELL_FORMED } from '../../core/json/index.ts'
import { pageMembers } from '../../core/json-api/index.ts'
import { isTicketId } from './ticket-id.ts'
import { TICKET_STATUSES } from './ticket-store.ts'

const MAX_TEXT_LENGTH = 4000

const text = z
  .string()
  .max(MAX_TEXT_LENGTH)
  .refine((value) => value.trim() !== '', { error: 'must not be empty' })
  .refine(...WELL_FORMED)

const statusError = `must be one of ${TICKET_STATUSES.join(', ')}`
const accountError = 'must be the id of an account, sent once'

/** The body of `POST /tickets`. */
export const newTicketSchema = z.strictObject({
  request_id: z
    .string()
    .refine(isRequestId, { error: 'must be a request id, as in X-Request-Id' })
    .describe('The call that the ticket is about, of the same account.'),
  message: text,
})

/** The body of `PATCH /tickets/{id}`. A reply without a status sets the status to `answered`. */
export const ticketChangeSchema = z
  .strictObject({ status: z.enum(TICKET_STATUSES, statusError), reply: text.nullable() })
  .partial()

export const ticketQuery = z.strictObject({
  ...pageMembers(isTicketId),
  status: z.enum(TICKET_STATUSES, statusError).optional(),
  account: z.string({ error: accountError }).optional(),
})
