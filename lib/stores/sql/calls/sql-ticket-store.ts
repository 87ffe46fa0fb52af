import type { ChangeOrigin } from '../../../core/change-log/index.ts'
import {
  handled,
  MAX_OPEN_TICKETS,
  refusalBeside,
  type Ticket,
  type TicketHandling,
  type TicketQuery,
  type TicketRefusal,
  type TicketStore,
} from '../../../core/tickets/index.ts'
import { ticketOpened } from '../../../management/tickets/ticket-opened.ts'
import { recordChange } from '../accounts/sql-change-log.ts'
import { checkDatabase } from '../driver/database.ts'
import { lockRows } from '../driver/row-locks.ts'
import type { Database, TicketsTable } from '../driver/tables.ts'
import { transact } from '../driver/transact.ts'
import { recordEvents } from '../webhooks/event-rows.ts'

/**
 * A ticket store in a database, for all processes that share it. A change and its row in the table `admin_changes` are
 * written in one transaction, a new ticket and its event for webhooks too.
 *
 * @example
 * const store = new SqlTicketStore(await openDatabase('sqlite:.data/gateway.db'))
 */
export class SqlTicketStore implements TicketStore {
  readonly #db: Database

  constructor(db: Database) {
    checkDatabase('SqlTicketStore', db)
    this.#db = db
  }

  add(ticket: Ticket): Promise<TicketRefusal | undefined> {
    const { requestId, createdAt, updatedAt, ...rest } = ticket
    const times = { created_at: BigInt(createdAt), updated_at: BigInt(updatedAt) }
    return transact(this.#db, async (trx) => {
      const refusal = ticket.status === 'open' ? await refusalOf(trx, ticket, MAX_OPEN_TICKETS) : undefined
      if (refusal) return refusal
      await trx
        .insertInto('tickets')
        .values({ ...rest, request_id: requestId, ...times })
        .execute()
      await recordEvents(trx, [ticketOpened(ticket)])
      return undefined
    })
  }

  async find(id: string): Promise<Ticket | undefined> {
    const row = await this.#db.selectFrom('tickets').selectAll().where('id', '=', id).executeTakeFirst()
    return row && toTicket(row)
  }

  async list({ status, account, before, limit }: TicketQuery): Promise<readonly Ticket[]> {
    let query = this.#db.selectFrom('tickets').selectAll()
    if (status !== undefined) query = query.where('status', '=', status)
    if (account !== undefined) query = query.where('account', '=', account)
    if (before !== undefined) query = query.where('id', '<', before)
    const rows = await query.orderBy('id', 'desc').limit(limit).execute()
    return rows.map(toTicket)
  }

  change(
    id: string,
    revise: (handling: TicketHandling) => TicketHandling,
    origin: ChangeOrigin,
  ): Promise<Ticket | TicketRefusal | undefined> {
    return transact(this.#db, async (trx) => {
      const query = trx.selectFrom('tickets').selectAll().where('id', '=', id)
      const row = await lockRows(trx, query).executeTakeFirst()
      if (!row) return undefined
      const before = toTicket(row)
      const changed = handled(before, revise(before), origin)
      if (!changed) return before
      const opens = before.status !== 'open' && changed.ticket.status === 'open'
      const refusal = opens ? await refusalOf(trx, before, Number.POSITIVE_INFINITY) : undefined
      if (refusal) return refusal
      const { status, reply, updatedAt } = changed.ticket
      await trx
        .updateTable('tickets')
        .set({ status, reply, updated_at: BigInt(updatedAt) })
        .where('id', '=', id)
        .execute()
      await recordChange(trx, changed.change)
      return changed.ticket
    })
  }
}

/** Returns why a ticket cannot be open. Others that open one of the same account wait for the end of this transaction. */
async function refusalOf(trx: Database, ticket: Ticket, most: number): Promise<TicketRefusal | undefined> {
  const { account, createdAt } = ticket
  const opened_at = BigInt(createdAt)
  await trx
    .insertInto('ticket_accounts')
    .values({ account, opened_at })
    .onConflict((conflict) => conflict.column('account').doUpdateSet({ opened_at }))
    .execute()
  const rows = await trx
    .selectFrom('tickets')
    .select(['id', 'request_id'])
    .where('account', '=', account)
    .where('status', '=', 'open')
    .execute()
  const open = rows.map(({ id, request_id }) => ({ id, requestId: request_id }))
  return refusalBeside(ticket, open, most)
}

function toTicket({ request_id, created_at, updated_at, ...row }: TicketsTable): Ticket {
  return { ...row, requestId: request_id, createdAt: Number(created_at), updatedAt: Number(updated_at) }
}
