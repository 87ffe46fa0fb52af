import type { TicketAnswer } from 'express-model-gateway/tickets'
import type { Call } from './calls.ts'

/** A ticket about a call, with its reply. */
export type Ticket = TicketAnswer & {
  /** For operators: the call; null if the log no longer has it. */
  readonly call?: Call | null
}
