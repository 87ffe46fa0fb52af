import { sql } from 'kysely'
import type { ChangeOrigin } from '../../../core/change-log/index.ts'
import {
  type Delivery,
  type DeliveryQuery,
  MAX_WEBHOOKS,
  type NewWebhook,
  type Webhook,
  type WebhookStore,
  webhookChange,
} from '../../../management/webhooks/index.ts'
import { recordChange } from '../accounts/sql-change-log.ts'
import { toList, toNumber } from '../driver/columns.ts'
import { checkDatabase } from '../driver/database.ts'
import { takeTurn } from '../driver/row-locks.ts'
import type { Database, WebhookDeliveriesTable, WebhookEventsTable, WebhooksTable } from '../driver/tables.ts'
import { transact } from '../driver/transact.ts'

/**
 * A store of webhooks in a database, for all processes that share it. Secrets are stored as they are, because they sign.
 *
 * @example
 * const store = new SqlWebhookStore(await openDatabase('sqlite:.data/gateway.db'))
 */
export class SqlWebhookStore implements WebhookStore {
  readonly #db: Database

  constructor(db: Database) {
    checkDatabase('SqlWebhookStore', db)
    this.#db = db
  }

  async list(limit: number, after?: string): Promise<readonly Webhook[]> {
    let query = this.#db.selectFrom('webhooks').selectAll()
    if (after !== undefined) query = query.where('id', '>', after)
    const rows = await query.orderBy('id').limit(limit).execute()
    return rows.map(toWebhook)
  }

  create(webhook: NewWebhook, origin: ChangeOrigin): Promise<Webhook | undefined> {
    const { id, url, format = 'standard', events, description, secret } = webhook
    const row = {
      ...{ id, url, format, description, secret, created_at: BigInt(origin.at), dropped: 0n },
      events: events && JSON.stringify(events),
      ...{ old_secret: null, old_secret_until: null, disabled_at: null },
    }
    return transact(this.#db, async (trx) => {
      // Two that create at the same time must count each other's.
      await takeTurn(trx, 'webhooks')
      const { count } = await trx
        .selectFrom('webhooks')
        .select(({ fn }) => fn.countAll<bigint>().as('count'))
        .executeTakeFirstOrThrow()
      if (Number(count) >= MAX_WEBHOOKS) return undefined
      await trx.insertInto('webhooks').values(row).execute()
      await recordChange(trx, webhookChange('webhook.created', webhook, origin))
      return toWebhook(row)
    })
  }

  rotate(id: string, secret: string, until: number, origin: ChangeOrigin): Promise<Webhook | undefined> {
    return transact(this.#db, async (trx) => {
      const row = await trx
        .updateTable('webhooks')
        .set({ old_secret: sql.ref('secret'), old_secret_until: BigInt(until), secret })
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirst()
      if (!row) return undefined
      await recordChange(trx, webhookChange('webhook.rotated', toWebhook(row), origin))
      return toWebhook(row)
    })
  }

  delete(id: string, origin: ChangeOrigin): Promise<boolean> {
    return transact(this.#db, async (trx) => {
      const row = await trx.deleteFrom('webhooks').where('id', '=', id).returningAll().executeTakeFirst()
      if (!row) return false
      await trx.deleteFrom('webhook_deliveries').where('webhook', '=', id).execute()
      await recordChange(trx, webhookChange('webhook.deleted', toWebhook(row), origin))
      return true
    })
  }

  async deliveries({ webhook, before, limit }: DeliveryQuery): Promise<readonly Delivery[] | undefined> {
    let query = this.#db
      .selectFrom('webhook_deliveries')
      .leftJoin('webhook_events', 'webhook_events.id', 'webhook_deliveries.event')
      .selectAll('webhook_deliveries')
      .select('webhook_events.type')
      .where('webhook', '=', webhook)
    if (before !== undefined) query = query.where('position', '<', BigInt(before))
    const rows = await query.orderBy('position', 'desc').limit(limit).execute()
    if (rows.length > 0) return rows.map(toDelivery)
    const known = await this.#db.selectFrom('webhooks').select('id').where('id', '=', webhook).execute()
    return known.length > 0 ? [] : undefined
  }
}

function toWebhook({
  id,
  url,
  format,
  events,
  description,
  disabled_at,
  dropped,
  created_at,
}: WebhooksTable): Webhook {
  return {
    id,
    url,
    format,
    events: toList(events) as Webhook['events'],
    description,
    createdAt: Number(created_at),
    disabledAt: toNumber(disabled_at),
    dropped: Number(dropped),
  }
}

function toDelivery(row: WebhookDeliveriesTable & { type: WebhookEventsTable['type'] | null }): Delivery {
  const { position, event, type, subject, attempts, status, error } = row
  return {
    ...{ id: String(position), event, subject, attempts, status, error },
    // Deliveries are deleted before their events.
    type: type as Delivery['type'],
    createdAt: Number(row.created_at),
    nextAt: toNumber(row.next_at),
    deliveredAt: toNumber(row.delivered_at),
  }
}
