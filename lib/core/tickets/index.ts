export {
  type CallsView,
  handled,
  MAX_OPEN_TICKETS,
  refusalBeside,
  TICKET_STATUSES,
  type Ticket,
  type TicketHandling,
  type TicketQuery,
  type TicketRefusal,
  type TicketStatus,
  type TicketStore,
} from './ticket-store.ts'
