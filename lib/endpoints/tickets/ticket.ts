import { z } from 'zod'
import { isRequestId, newRequestId } from '../../core/call/index.ts'
import { WELL_FORMED } from '../../core/json/index.ts'
import { type AnswerOf, isoTime, time } from '../../core/json-api/index.ts'
import { TICKET_STATUSES, type Ticket } from '../../core/tickets/index.ts'

const MAX_TEXT_LENGTH = 4000

/** A text that callers and operators write in a ticket. */
export const ticketText = z
  .string()
  .max(MAX_TEXT_LENGTH)
  .refine((value) => value.trim() !== '', { error: 'must not be empty' })
  .refine(...WELL_FORMED)

/** The text of a caller in a new ticket. Clients that send an empty text mean none. */
export const questionText = z
  .string()
  .max(MAX_TEXT_LENGTH)
  .refine(...WELL_FORMED)
  .default('')

/** A ticket in answers. */
export const ticket = z.strictObject({
  id: z.string(),
  object: z.literal('ticket'),
  account: z.string(),
  key: z.string().nullable(),
  request_id: z.string(),
  message: z.string(),
  status: z.enum(TICKET_STATUSES),
  reply: z.string().nullable(),
  created_at: time,
  updated_at: time,
})

export type TicketAnswer = AnswerOf<typeof ticket>

export function describeTicket(ticket: Ticket): TicketAnswer {
  return {
    id: ticket.id,
    object: 'ticket',
    account: ticket.account,
    key: ticket.key,
    request_id: ticket.requestId,
    message: ticket.message,
    status: ticket.status,
    reply: ticket.reply,
    created_at: isoTime(ticket.createdAt),
    updated_at: isoTime(ticket.updatedAt),
  }
}

const PREFIX = 'tkt_'
const REQUEST_PREFIX = 'req_'

/** Returns a new ticket id. It has the form of a request id, so that ids sort by time. */
export function newTicketId(now: number): string {
  return PREFIX + newRequestId(now).slice(REQUEST_PREFIX.length)
}

export function isTicketId(text: string): boolean {
  return text.startsWith(PREFIX) && isRequestId(REQUEST_PREFIX + text.slice(PREFIX.length))
}
