import type { ChangeOrigin } from '../../core/change-log/index.ts'
import { FairQueue } from '../../core/fair-queue/index.ts'
import { aNumber, checkOptions } from '../../core/options/index.ts'
import {
  handled,
  refusalBeside,
  type Ticket,
  type TicketHandling,
  type TicketQuery,
  type TicketRefusal,
  type TicketStore,
} from '../../core/tickets/index.ts'

/** Options of {@link MemoryTicketStore}. */
export interface MemoryTicketStoreOptions {
  /** Most tickets to hold; of the account with the most, the oldest are dropped. Defaults to 10000. */
  maxTickets?: number
}

/**
 * A ticket store in this process's memory. It is bounded and ends with the process.
 *
 * @throws TypeError at construction if an option is invalid.
 * @example
 * const store = new MemoryTicketStore()
 */
export class MemoryTicketStore implements TicketStore {
  readonly #tickets = new Map<string, Ticket>()
  /** In the order in which they came. */
  readonly #order: FairQueue<string>
  /** The open tickets of each account. */
  readonly #open = new Map<string, Map<string, Ticket>>()

  constructor(options: MemoryTicketStoreOptions = {}) {
    checkOptions<MemoryTicketStoreOptions>('MemoryTicketStore', options, {
      maxTickets: aNumber('at least 1', 1),
    })
    const { maxTickets = 10_000 } = options
    this.#order = new FairQueue({ maxItems: maxTickets })
  }

  async add(ticket: Ticket): Promise<TicketRefusal | undefined> {
    const refusal = ticket.status === 'open' ? refusalBeside(ticket, this.#openOf(ticket)) : undefined
    if (refusal) return refusal
    this.#set(ticket)
    for (const dropped of this.#order.add(ticket.account, ticket.id)) this.#drop(dropped)
    return undefined
  }

  async find(id: string): Promise<Ticket | undefined> {
    return this.#tickets.get(id)
  }

  async list({ status, account, before, limit }: TicketQuery): Promise<readonly Ticket[]> {
    return [...this.#tickets.values()]
      .filter((ticket) => status === undefined || ticket.status === status)
      .filter((ticket) => account === undefined || ticket.account === account)
      .filter(({ id }) => before === undefined || id < before)
      .sort((one, other) => (one.id > other.id ? -1 : 1))
      .slice(0, limit)
  }

  async change(
    id: string,
    revise: (handling: TicketHandling) => TicketHandling,
    origin: ChangeOrigin,
  ): Promise<Ticket | TicketRefusal | undefined> {
    const ticket = this.#tickets.get(id)
    if (!ticket) return undefined
    const changed = handled(ticket, revise(ticket), origin)
    if (!changed) return ticket
    const opens = ticket.status !== 'open' && changed.ticket.status === 'open'
    const refusal = opens ? refusalBeside(ticket, this.#openOf(ticket), Number.POSITIVE_INFINITY) : undefined
    if (refusal) return refusal
    this.#set(changed.ticket)
    return changed.ticket
  }

  #openOf({ account }: Ticket): Ticket[] {
    return [...(this.#open.get(account)?.values() ?? [])]
  }

  #set(ticket: Ticket): void {
    const { id, account, status } = ticket
    this.#tickets.set(id, ticket)
    if (status !== 'open') this.#end(ticket)
    else this.#open.set(account, (this.#open.get(account) ?? new Map()).set(id, ticket))
  }

  #drop(id: string): void {
    const ticket = this.#tickets.get(id)
    this.#tickets.delete(id)
    if (ticket) this.#end(ticket)
  }

  #end({ id, account }: Ticket): void {
    const open = this.#open.get(account)
    open?.delete(id)
    if (open?.size === 0) this.#open.delete(account)
  }
}
