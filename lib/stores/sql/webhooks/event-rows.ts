import type { WebhookEvent } from '../../../management/webhooks/index.ts'
import type { Cell } from '../driver/columns.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'

/**
 * Records events for delivery, in the transaction of what they report. An id that was recorded before is left out.
 *
 * @example
 * writes.push({ statement: RECORD_EVENTS, rows: events.map(eventRow) })
 */
export const RECORD_EVENTS = RowStatement.insert(
  'webhook_events',
  { id: 'text', type: 'text', subject: 'text', at: 'bigint', data: 'text' },
  'on conflict (id) do nothing',
  { constants: { addressed: 0 }, loose: true },
)

/** Returns the cells of {@link RECORD_EVENTS}. */
export function eventRow({ id, type, subject, at, data }: WebhookEvent): Cell[] {
  return [id, type, subject, at, JSON.stringify(data)]
}

/**
 * Records events in the transaction of what they report.
 *
 * @returns how many were not recorded before.
 */
export async function recordEvents(trx: Database, events: readonly WebhookEvent[]): Promise<number> {
  return (await RECORD_EVENTS.run(trx, events.map(eventRow))).changes
}

/**
 * Records an event behind all of its subject that have no place yet: they get it by their times, and the process that
 * recorded them may have a clock that is ahead.
 */
export async function recordLast(trx: Database, event: WebhookEvent): Promise<void> {
  const last = await trx
    .selectFrom('webhook_events')
    .select(({ fn }) => fn.max('at').as('at'))
    .where('addressed', '=', 0)
    .where('subject', '=', event.subject)
    .executeTakeFirst()
  await recordEvents(trx, [{ ...event, at: Math.max(event.at, Number(last?.at ?? 0) + 1) }])
}
