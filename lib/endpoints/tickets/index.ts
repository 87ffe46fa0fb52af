export {
  type CallsView,
  handled,
  MAX_OPEN_TICKETS,
  refusalBeside,
  type Ticket,
  type TicketHandling,
  type TicketQuery,
  type TicketRefusal,
  type TicketStatus,
  type TicketStore,
} from '../../core/tickets/index.ts'
export { MemoryTicketStore, type MemoryTicketStoreOptions } from './memory-ticket-store.ts'
export type { TicketAnswer } from './ticket.ts'
export { type TicketRoutesOptions, ticketRoutes } from './tickets.ts'
