import type { ChangeOrigin } from '../../../core/change-log/index.ts'
import {
  handled,
  type Ticket,
  type TicketHandling,
  type TicketQuery,
  type TicketStore,
  ticketOpened,
} from '../../../endpoints/tickets/index.ts'
import { recordChange } from '../accounts/sql-change-log.ts'
import { checkDatabase } from '../driver/check-database.ts'
import { lockRows } from '../driver/row-locks.ts'
import type { Database } from '../driver/tables.ts'
import { recordEvents } from '../webhooks/event-rows.ts'
import type { TicketsTable } from './call-tables.ts'

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

  async add(ticket: Ticket): Promise<void> {
    const { requestId, createdAt, updatedAt, ...rest } = ticket
    const times = { created_at: BigInt(createdAt), updated_at: BigInt(updatedAt) }
    await this.#db.transaction().execute(async (trx) => {
      await trx
        .insertInto('tickets')
        .values({ ...rest, request_id: requestId, ...times })
        .execute()
      await recordEvents(trx, [ticketOpened(ticket)])
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
  ): Promise<Ticket | undefined> {
    return this.#db.transaction().execute(async (trx) => {
      const query = trx.selectFrom('tickets').selectAll().where('id', '=', id)
      const row = await lockRows(trx, query).executeTakeFirst()
      if (!row) return undefined
      const before = toTicket(row)
      const changed = handled(before, revise(before), origin)
      if (!changed) return before
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

function toTicket({ request_id, created_at, updated_at, ...row }: TicketsTable): Ticket {
  return { ...row, requestId: request_id, createdAt: Number(created_at), updatedAt: Number(updated_at) }
}
