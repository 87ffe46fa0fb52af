import { aChangeLog, type ChangeOrigin, MemoryChangeLog } from '../../core/change-log/index.ts'
import { aNumber, anObjectWith, checkOptions } from '../../core/options/index.ts'
import type { WebhookOutbox } from '../../webhooks/index.ts'
import { ticketOpened } from './ticket-opened.ts'
import {
  handled,
  type Ticket,
  type TicketHandling,
  type TicketQuery,
  type TicketStore,
} from './ticket-store.ts'

/** Options of {@link MemoryTicketStore}. */
export interface MemoryTicketStoreOptions {
  /** Most tickets to hold; the oldest are dropped. Defaults to 10000. */
  maxTickets?: number
  /** The log of changes. Defaults to a new one. */
  changes?: MemoryChangeLog
  /** Where new tickets are told as `ticket.opened`. Defaults to nowhere. */
  outbox?: Pick<WebhookOutbox, 'record'>
}

/**
 * A ticket store in this process's memory. It is bounded and ends with the process.
 *
 * @throws TypeError at construction if an option is invalid.
 * @example
 * const store = new MemoryTicketStore()
 */
export class MemoryTicketStore implements TicketStore {
  readonly #maxTickets: number
  readonly #changes: MemoryChangeLog
  readonly #outbox: Pick<WebhookOutbox, 'record'> | undefined
  readonly #tickets = new Map<string, Ticket>()

  constructor(options: MemoryTicketStoreOptions = {}) {
    checkOptions<MemoryTicketStoreOptions>('MemoryTicketStore', options, {
      maxTickets: aNumber('at least 1', 1),
      changes: aChangeLog,
      outbox: anObjectWith('an outbox, such as new MemoryWebhooks()', 'record'),
    })
    const { maxTickets = 10_000, changes } = options
    this.#maxTickets = maxTickets
    this.#changes = changes ?? new MemoryChangeLog()
    this.#outbox = options.outbox
  }

  async add(ticket: Ticket): Promise<void> {
    this.#tickets.set(ticket.id, ticket)
    const [oldest] = this.#tickets.keys()
    if (this.#tickets.size > this.#maxTickets && oldest !== undefined) this.#tickets.delete(oldest)
    await this.#outbox?.record([ticketOpened(ticket)])
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
  ): Promise<Ticket | undefined> {
    const ticket = this.#tickets.get(id)
    if (!ticket) return undefined
    const changed = handled(ticket, revise(ticket), origin)
    if (!changed) return ticket
    this.#tickets.set(id, changed.ticket)
    this.#changes.add(changed.change)
    return changed.ticket
  }
}
