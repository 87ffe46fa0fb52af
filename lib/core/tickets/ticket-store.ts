import type { CallLogEntry } from '../call/index.ts'
import type { ChangeOrigin, RecordedChange } from '../change-log/index.ts'

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

/** Most open tickets of an account. */
export const MAX_OPEN_TICKETS = 100

/** Why a ticket cannot be open. */
export type TicketRefusal =
  /** The call has another open ticket, which has this id. */
  | { readonly refused: 'call_has_ticket'; readonly ticket: string }
  /** The account has {@link MAX_OPEN_TICKETS}. */
  | { readonly refused: 'too_many_open' }

/** A store for tickets. Operations reject if the store cannot be reached. */
export interface TicketStore {
  /**
   * Adds a ticket, unless it would be open while its call has another open ticket, or its account too many: however many are
   * added at the same time, and by however many processes.
   *
   * @returns undefined if it was added.
   */
  add(ticket: Ticket): Promise<TicketRefusal | undefined>

  find(id: string): Promise<Ticket | undefined>

  /** Returns tickets, newest first. */
  list(query: TicketQuery): Promise<readonly Ticket[]>

  /**
   * Changes a ticket and records the change in the same transaction. If nothing changes, nothing is recorded.
   *
   * @param revise returns the new handling for the current one, while no other change runs. May be called again.
   * @returns the ticket as it is now; undefined if there is none; a refusal if it would be open again while its call has another
   *   open ticket. Operators may have more than {@link MAX_OPEN_TICKETS} of an account open.
   */
  change(
    id: string,
    revise: (handling: TicketHandling) => TicketHandling,
    origin: ChangeOrigin,
  ): Promise<Ticket | TicketRefusal | undefined>
}

/** Returns why a ticket cannot be open beside the open tickets of its account; undefined if it can. */
export function refusalBeside(
  { requestId }: Pick<Ticket, 'requestId'>,
  open: readonly Pick<Ticket, 'id' | 'requestId'>[],
  most = MAX_OPEN_TICKETS,
): TicketRefusal | undefined {
  const same = open.find((other) => other.requestId === requestId)
  if (same) return { refused: 'call_has_ticket', ticket: same.id }
  return open.length >= most ? { refused: 'too_many_open' } : undefined
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

/** The operation of a call log that tickets need; every `CallStore` has it. */
export interface CallsView {
  /** Returns the entries with these ids, without response bodies. */
  list(query: {
    readonly ids: readonly string[]
    readonly limit: number
  }): Promise<{ readonly entries: readonly CallLogEntry[] }>
}
