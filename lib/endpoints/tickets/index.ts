export { type AdminTicketRoutesOptions, adminTicketRoutes } from './admin-ticket-routes.ts'
export type { CallsView } from './calls-view.ts'
export { MemoryTicketStore, type MemoryTicketStoreOptions } from './memory-ticket-store.ts'
export { ticketOpened } from './ticket-opened.ts'
export {
  handled,
  type Ticket,
  type TicketHandling,
  type TicketQuery,
  type TicketStatus,
  type TicketStore,
} from './ticket-store.ts'
export { type TicketRoutesOptions, ticketRoutes } from './tickets.ts'
