import { isoTime } from '../../core/json-api/index.ts'
import type { Ticket } from './ticket-store.ts'

export function describeTicket(ticket: Ticket) {
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
