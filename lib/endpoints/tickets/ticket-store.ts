import type { ChangeOrigin, RecordedChange } from '../../core/change-log/index.ts'

export const TICKET_STATUSES = ['open', 'answered', 'closed'] as const

export type TicketStatus = (typeof TICKET_STATUSES)[number]

/** The members of a ticket that operators change. */
export interface TicketHandling {
  readonly status: TicketStatus
  readonly reply: string | null
}

/** A caller's question about a call. Ids sort by time. Times are milliseconds since the epoch. */
export interface Ticket extends TicketHandling {
  readonly id: string
  readonly account: string
  /** The key that created the ticket. */
  readonly key: string | null
  /** The call that the ticket is about. */
  readonly requestId: string
  readonly message: string
  readonly createdAt: number
  readonly updatedAt: number
}

/** Selects tickets; a member that is left out does not filter. */
export interface TicketQuery {
  readonly status?: TicketStatus | undefined
  readonly account?: string | undefined
  /** Selects tickets with a smaller id; the last id of the previous page. */
  readonly before?: string | undefined
  /** Most tickets to return; at least 1. */
  readonly limit: number
}

/** A store for tickets. Operations reject if the store cannot be reached. */
export interface TicketStore {
  add(ticket: Ticket): Promise<void>

  find(id: string): Promise<Ticket | undefined>

  /** Returns tickets, newest first. */
  list(query: TicketQuery): Promise<readonly Ticket[]>

  /**
   * Changes a ticket and records the change in the same transaction. If nothing changes, nothing is recorded.
   *
   * @param revise returns the new handling for the current one, while nobody else changes it. May be called again.
   * @returns the ticket as it is now; undefined if there is none.
   */
  change(
    id: string,
    revise: (handling: TicketHandling) => TicketHandling,
    origin: ChangeOrigin,
  ): Promise<Ticket | undefined>
}

/** Returns a changed ticket and the record of the change; undefined if nothing changed. */
export function handled(
  ticket: Ticket,
  { status, reply }: TicketHandling,
  origin: ChangeOrigin,
): { ticket: Ticket; change: RecordedChange } | undefined {
  if (ticket.status === status && ticket.reply === reply) return undefined
  const before = { status: ticket.status, reply: ticket.reply }
  return {
    ticket: { ...ticket, status, reply, updatedAt: origin.at },
    change: { ...origin, action: 'ticket.changed', subject: ticket.id, before, after: { status, reply } },
  }
}
