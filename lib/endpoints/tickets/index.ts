export type { CallsView } from './calls-view.ts'
export { MemoryTicketStore, type MemoryTicketStoreOptions } from './memory-ticket-store.ts'
export { type TicketDeskRoutesOptions, ticketDeskRoutes } from './ticket-desk.ts'
export {
  handled,
  type Ticket,
  type TicketHandling,
  type TicketQuery,
  type TicketStatus,
  type TicketStore,
} from './ticket-store.ts'
export { type TicketRoutesOptions, ticketRoutes } from './tickets.ts'
