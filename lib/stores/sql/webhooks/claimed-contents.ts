import type { ClaimedDelivery } from '../../../webhooks/index.ts'
import type { Database } from '../driver/tables.ts'
import type { WebhookDeliveriesTable } from './webhook-tables.ts'

/** Returns claimed deliveries of a webhook with all that they send; deletes those whose webhook or event is gone. */
export async function withContents(
  db: Database,
  webhook: string,
  claimed: readonly Pick<WebhookDeliveriesTable, 'position' | 'event' | 'attempts'>[],
  now: number,
): Promise<ClaimedDelivery[]> {
  const known = await db.selectFrom('webhooks').selectAll().where('id', '=', webhook).executeTakeFirst()
  const ids = claimed.map(({ event }) => event)
  const events = await db.selectFrom('webhook_events').selectAll().where('id', 'in', ids).execute()
  // A webhook may be deleted while an event is addressed to it.
  const orphans = claimed.filter(({ event }) => !known || !events.some(({ id }) => id === event))
  if (orphans.length > 0) {
    const positions = orphans.map(({ position }) => position)
    await db.deleteFrom('webhook_deliveries').where('position', 'in', positions).execute()
  }
  if (!known) return []
  const { url, secret, old_secret, old_secret_until } = known
  const isOldValid = old_secret !== null && Number(old_secret_until) > now
  const secrets = isOldValid ? [secret, old_secret] : [secret]
  return claimed.flatMap(({ position, event: id, attempts }) => {
    const row = events.find((event) => event.id === id)
    if (!row) return []
    const { type, subject, at, data } = row
    const event = { id, type, subject, at: Number(at), data: JSON.parse(data) as object }
    return { id: String(position), webhook, url, secrets, event, attempts }
  })
}
