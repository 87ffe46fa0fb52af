export type {
  CallsView,
  Ticket,
  TicketHandling,
  TicketQuery,
  TicketRefusal,
  TicketStatus,
  TicketStore,
} from '../../core/tickets/index.ts'
export { MemoryTicketStore, type MemoryTicketStoreOptions } from './memory-ticket-store.ts'
export type { TicketAnswer } from './ticket.ts'
export { type TicketRoutesOptions, ticketRoutes } from './tickets.ts'
