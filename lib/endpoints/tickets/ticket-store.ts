import type { ChangeOrigin, RecordedChange } from '../../core/change-log/index.ts'

/** What a ticket can be. */
export const TICKET_STATUSES = ['open', 'answered', 'closed'] as const

export type TicketStatus = (typeof TICKET_STATUSES)[number]

/** What operators decide about a ticket. */
export interface TicketHandling {
  readonly status: TicketStatus
  readonly reply: string | null
}

/** A caller's question about a call. Ids sort by time. Times are milliseconds since the epoch. */
export interface Ticket extends TicketHandling {
  readonly id: string
  readonly account: string
  /** The key that asked. */
  readonly key: string | null
  /** The call that it is about. */
  readonly requestId: string
  readonly message: string
  readonly createdAt: number
  readonly updatedAt: number
}

/** Which tickets to list; members left out do not narrow. */
export interface TicketQuery {
  readonly status?: TicketStatus | undefined
  readonly account?: string | undefined
  /** Only tickets whose id is smaller: where the page before ended. */
  readonly before?: string | undefined
  /** Most tickets answered; at least 1. */
  readonly limit: number
}

/** Where tickets are kept. Rejects when the store cannot be reached. */
export interface TicketStore {
  add(ticket: Ticket): Promise<void>

  find(id: string): Promise<Ticket | undefined>

  /** Newest first. */
  list(query: TicketQuery): Promise<readonly Ticket[]>

  /**
   * Handles a ticket, and records the change in the same transaction. What comes out as it was is no change, and not
   * recorded.
   *
   * @param revise makes the new handling of the one that stands, while nobody else changes it. May be run again.
   * @returns the ticket as it is now; undefined where there is none.
   */
  change(
    id: string,
    revise: (handling: TicketHandling) => TicketHandling,
    origin: ChangeOrigin,
  ): Promise<Ticket | undefined>
}

/** A ticket handled, and what a store records of it; undefined where nothing is changed. */
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
