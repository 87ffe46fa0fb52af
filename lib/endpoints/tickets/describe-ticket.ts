import type { Ticket } from './ticket-store.ts'

/** Returns the JSON of a ticket. */
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
    created_at: new Date(ticket.createdAt).toISOString(),
    updated_at: new Date(ticket.updatedAt).toISOString(),
  }
}
