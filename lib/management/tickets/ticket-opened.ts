import type { Ticket } from '../../endpoints/tickets/index.ts'
import { newEvent, type WebhookEvent } from '../webhooks/index.ts'

/** Returns the event of a new ticket. The text of the caller stays in the ticket. */
export function ticketOpened({ id, account, key, requestId, createdAt }: Ticket): WebhookEvent {
  const data = { ticket: id, account, key, request_id: requestId }
  return newEvent({ type: 'ticket.opened', subject: `ticket:${id}`, at: createdAt, data })
}
