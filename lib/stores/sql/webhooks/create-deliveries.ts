import { type CreatedDeliveries, DROPPED_ERROR, MAX_WAITING } from '../../../webhooks/index.ts'
import { toList } from '../driver/nullable-cells.ts'
import { lockFreeRows } from '../driver/row-locks.ts'
import type { Database } from '../driver/tables.ts'

/** Events per transaction. */
const MAX_EVENTS = 100
const NOTHING: CreatedDeliveries = { events: 0, dropped: new Map() }

/** Makes the deliveries of new events. One process at a time does, so that their positions are in the order of the events. */
export async function createDeliveries(db: Database, now: number): Promise<CreatedDeliveries> {
  const some = await db
    .selectFrom('webhook_events')
    .select('id')
    .where('addressed', '=', 0)
    .limit(1)
    .execute()
  if (some.length === 0) return NOTHING
  return db.transaction().execute(async (trx) => {
    const position = trx.selectFrom('webhook_positions').select('last')
    const counted = await lockFreeRows(trx, position).executeTakeFirst()
    // Another process that holds the row does this now.
    if (!counted) return NOTHING
    const events = await trx
      .selectFrom('webhook_events')
      .select(['id', 'type', 'subject'])
      .where('addressed', '=', 0)
      .orderBy('at')
      .orderBy('id')
      .limit(MAX_EVENTS)
      .execute()
    if (events.length === 0) return NOTHING
    const webhooks = await trx
      .selectFrom('webhooks')
      .select(['id', 'events'])
      .where('disabled_at', 'is', null)
      .execute()
    const wanted = webhooks.map(({ id, events: types }) => ({ id, types: toList(types) }))
    const pairs = events.flatMap((event) =>
      wanted
        .filter(({ types }) => types === null || types.includes(event.type))
        .map(({ id: webhook }) => ({ webhook, event: event.id, subject: event.subject })),
    )
    const rows = pairs.map((pair, i) => ({
      ...pair,
      position: counted.last + BigInt(i + 1),
      created_at: BigInt(now),
      next_at: BigInt(now),
      ...{ attempts: 0, owner: null, status: null, error: null, delivered_at: null },
    }))
    for (let i = 0; i < rows.length; i += MAX_EVENTS)
      await trx
        .insertInto('webhook_deliveries')
        .values(rows.slice(i, i + MAX_EVENTS))
        .execute()
    await trx
      .updateTable('webhook_positions')
      .set({ last: counted.last + BigInt(rows.length) })
      .execute()
    const ids = events.map(({ id }) => id)
    await trx.updateTable('webhook_events').set({ addressed: 1 }).where('id', 'in', ids).execute()
    return {
      events: events.length,
      dropped: await dropOldest(trx, [...new Set(pairs.map(({ webhook }) => webhook))]),
    }
  })
}

/** Drops the oldest deliveries of webhooks for which too many wait. */
async function dropOldest(trx: Database, webhooks: readonly string[]): Promise<Map<string, number>> {
  const dropped = new Map<string, number>()
  for (const webhook of webhooks) {
    const waiting = trx
      .selectFrom('webhook_deliveries')
      .where('webhook', '=', webhook)
      .where('next_at', 'is not', null)
    const { count } = await waiting
      .select(({ fn }) => fn.countAll<bigint>().as('count'))
      .executeTakeFirstOrThrow()
    const over = Number(count) - MAX_WAITING
    if (over <= 0) continue
    const oldest = waiting.select('position').where('owner', 'is', null).orderBy('position').limit(over)
    await trx
      .updateTable('webhook_deliveries')
      .set({ next_at: null, error: DROPPED_ERROR })
      .where('position', 'in', oldest)
      .execute()
    await trx
      .updateTable('webhooks')
      .set(({ eb }) => ({ dropped: eb('dropped', '+', BigInt(over)) }))
      .where('id', '=', webhook)
      .execute()
    dropped.set(webhook, over)
  }
  return dropped
}
