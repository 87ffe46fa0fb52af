import { sql } from 'kysely'
import { surplusOf } from '../../../core/fair-queue/index.ts'
import {
  type AnnouncedState,
  type Announcement,
  type AttemptEnd,
  type ClaimedDelivery,
  type CreatedDeliveries,
  type DeliveryClaim,
  DROPPED_ERROR,
  deliveryShare,
  deliveryTurns,
  GONE_ERROR,
  LASTING_STATES,
  LONGEST_WAIT_MS,
  MAX_WAITING,
  type WaitingShare,
  type WebhookEvent,
  type WebhookOutbox,
} from '../../../management/webhooks/index.ts'
import { toBigint, toList, toNumber } from '../driver/columns.ts'
import { checkDatabase } from '../driver/database.ts'
import { lockFreeRows, lockRows } from '../driver/row-locks.ts'
import type { Database, WebhookDeliveriesTable, WebhookStatesTable } from '../driver/tables.ts'
import { transact } from '../driver/transact.ts'
import { recordEvents, recordLast } from './event-rows.ts'

/** Returns claimed deliveries of a webhook with all that they send; deletes those whose webhook or event is gone. */
async function withContents(
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
  const { url, format, secret, old_secret, old_secret_until } = known
  const isOldValid = old_secret !== null && Number(old_secret_until) > now
  const secrets = isOldValid ? [secret, old_secret] : [secret]
  return claimed.flatMap(({ position, event: id, attempts }) => {
    const row = events.find((event) => event.id === id)
    if (!row) return []
    const { type, subject, at, data } = row
    const event = { id, type, subject, at: Number(at), data: JSON.parse(data) as object }
    return { id: String(position), webhook, url, format, secrets, event, attempts }
  })
}

/** Events per transaction. */
const MAX_EVENTS = 100
const NOTHING: CreatedDeliveries = { events: 0, dropped: new Map() }

/** Makes the deliveries of new events. One process at a time does, so that their positions are in the order of the events. */
async function createDeliveries(db: Database, now: number): Promise<CreatedDeliveries> {
  const some = await db
    .selectFrom('webhook_events')
    .select('id')
    .where('addressed', '=', 0)
    .limit(1)
    .execute()
  if (some.length === 0) return NOTHING
  return transact(db, async (trx) => {
    const position = trx.selectFrom('webhook_positions').select('last')
    const counted = await lockFreeRows(trx, position).executeTakeFirst()
    // Another process that holds the row does this now.
    if (!counted) return NOTHING
    const events = await trx
      .selectFrom('webhook_events')
      .select(['id', 'type', 'subject', 'data'])
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
    const shared = events.map((event) => ({
      ...event,
      ...deliveryShare({ ...event, data: JSON.parse(event.data) as object }),
    }))
    const wanted = webhooks
      .map(({ id, events: types }) => {
        const list = toList(types)
        return { webhook: id, wants: shared.filter(({ type }) => list === null || list.includes(type)) }
      })
      .filter(({ wants }) => wants.length > 0)
    const names = wanted.map(({ webhook }) => webhook)
    const waiting = await waitingFor(trx, names)
    const rows = wanted
      .flatMap(({ webhook, wants }) => {
        const nextTurn = deliveryTurns(waiting.get(webhook) ?? [])
        return wants.map(({ id: event, subject, queue, share }) => {
          const turn = BigInt(nextTurn({ queue, share }))
          return { webhook, event, subject, queue, share, turn }
        })
      })
      .map((row, i) => ({
        ...row,
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
    return { events: events.length, dropped: await dropSurplus(trx, names) }
  })
}

/** Returns what each account has waiting, by webhook. */
async function waitingFor(trx: Database, webhooks: readonly string[]): Promise<Map<string, WaitingShare[]>> {
  if (webhooks.length === 0) return new Map()
  const rows = await trx
    .selectFrom('webhook_deliveries')
    .select(['webhook', 'queue', 'share'])
    .select(({ fn }) => [
      fn.countAll<bigint>().as('count'),
      fn.min('turn').as('first_turn'),
      fn.max('turn').as('last_turn'),
    ])
    .where('webhook', 'in', webhooks)
    .where('next_at', 'is not', null)
    .groupBy(['webhook', 'queue', 'share'])
    .execute()
  const shares = rows.map(({ webhook, queue, share, count, first_turn, last_turn }) => ({
    webhook,
    of: {
      ...{ queue, share, count: Number(count) },
      ...{ firstTurn: Number(first_turn), lastTurn: Number(last_turn) },
    },
  }))
  const byWebhook = Map.groupBy(shares, ({ webhook }) => webhook)
  return new Map([...byWebhook].map(([webhook, own]) => [webhook, own.map(({ of }) => of)]))
}

/** Drops deliveries where too many wait; returns how many, by webhook. */
async function dropSurplus(trx: Database, webhooks: readonly string[]): Promise<Map<string, number>> {
  const dropped = new Map<string, number>()
  for (const [webhook, waiting] of await waitingFor(trx, webhooks)) {
    let count = 0
    for (const [queue, shares] of Map.groupBy(waiting, (each) => each.queue)) {
      const counts = shares.map((each) => [each.share, each.count] as const)
      for (const [share, surplus] of surplusOf(counts, MAX_WAITING))
        count += await dropOldest(trx, webhook, { queue, share }, surplus)
    }
    if (count === 0) continue
    await trx
      .updateTable('webhooks')
      .set(({ eb }) => ({ dropped: eb('dropped', '+', BigInt(count)) }))
      .where('id', '=', webhook)
      .execute()
    dropped.set(webhook, count)
  }
  return dropped
}

async function dropOldest(
  trx: Database,
  webhook: string,
  { queue, share }: Pick<WaitingShare, 'queue' | 'share'>,
  surplus: number,
): Promise<number> {
  const oldest = trx
    .selectFrom('webhook_deliveries')
    .select('position')
    .where('webhook', '=', webhook)
    .where('queue', '=', queue)
    .where('share', '=', share)
    .where('next_at', 'is not', null)
    .where('owner', 'is', null)
    .orderBy('position')
    .limit(surplus)
  const { numUpdatedRows } = await trx
    .updateTable('webhook_deliveries')
    .set({ next_at: null, error: DROPPED_ERROR })
    .where('position', 'in', oldest)
    .executeTakeFirst()
  return Number(numUpdatedRows)
}

/**
 * An outbox in a database, for all processes that share it.
 *
 * @example
 * const sender = new WebhookSender({ outbox: new SqlWebhookOutbox(await openDatabase('sqlite:.data/gateway.db')) })
 */
export class SqlWebhookOutbox implements WebhookOutbox {
  readonly #db: Database

  constructor(db: Database) {
    checkDatabase('SqlWebhookOutbox', db)
    this.#db = db
  }

  async record(events: readonly WebhookEvent[]): Promise<void> {
    await recordEvents(this.#db, events)
  }

  announce(
    subject: string,
    at: number,
    decide: (last: AnnouncedState | undefined) => Announcement | undefined,
  ): Promise<boolean> {
    return transact(this.#db, async (trx) => {
      // Another process that announces the subject at the same time waits for this row.
      await trx
        .insertInto('webhook_states')
        .values({ subject, state: UNANNOUNCED, at: BigInt(at) })
        .onConflict((conflict) => conflict.column('subject').doNothing())
        .execute()
      const query = trx.selectFrom('webhook_states').selectAll().where('subject', '=', subject)
      const row = await lockRows(trx, query).executeTakeFirstOrThrow()
      const announcement = decide(row.state === UNANNOUNCED ? undefined : toState(row))
      if (!announcement) return false
      await trx
        .updateTable('webhook_states')
        .set({ state: announcement.state, at: BigInt(at) })
        .where('subject', '=', subject)
        .execute()
      if (!announcement.event) return false
      await recordLast(trx, announcement.event)
      return true
    })
  }

  async announced(state: string): Promise<ReadonlyMap<string, AnnouncedState>> {
    const rows = await this.#db.selectFrom('webhook_states').selectAll().where('state', '=', state).execute()
    return new Map(rows.map((row) => [row.subject, toState(row)]))
  }

  async claimTurn(name: string, now: number, everyMs: number): Promise<boolean> {
    const { numInsertedOrUpdatedRows } = await this.#db
      .insertInto('webhook_states')
      .values({ subject: name, state: 'turn', at: BigInt(now) })
      .onConflict((conflict) =>
        conflict
          .column('subject')
          .doUpdateSet({ at: BigInt(now) })
          // A turn that seems to come was taken before the clock was set back.
          .where(({ eb, or }) =>
            or([
              eb('webhook_states.at', '<=', BigInt(now - everyMs)),
              eb('webhook_states.at', '>=', BigInt(now + everyMs)),
            ]),
          ),
      )
      .executeTakeFirst()
    return numInsertedOrUpdatedRows === 1n
  }

  createDeliveries(now: number): Promise<CreatedDeliveries> {
    return createDeliveries(this.#db, now)
  }

  async oldestWaiting(): Promise<number | null> {
    // The sum keeps a planner from the index by time, in which almost all deliveries have ended.
    const { rows } = await sql<{ oldest: bigint | null }>`
      select min(waits) as oldest from (
        select min(created_at + 0) as waits from webhook_deliveries where next_at is not null
        union all select min(at + 0) from webhook_events where addressed = 0
      ) as waiting`.execute(this.#db)
    return toNumber(rows[0]?.oldest ?? null)
  }

  async due(now: number): Promise<readonly string[]> {
    const rows = await this.#db
      .selectFrom('webhook_deliveries')
      .select('webhook')
      .distinct()
      .where(isFree(now))
      .execute()
    return rows.map(({ webhook }) => webhook)
  }

  /** Claims in one statement, so that concurrent processes get different deliveries. */
  async claim({ webhook, owner, now, until, limit }: DeliveryClaim): Promise<readonly ClaimedDelivery[]> {
    const first = this.#db
      .selectFrom('webhook_deliveries as own')
      .select('own.position')
      .where('own.webhook', '=', webhook)
      .where(isFree(now))
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('webhook_deliveries as earlier')
              .select('earlier.position')
              .whereRef('earlier.webhook', '=', 'own.webhook')
              .whereRef('earlier.subject', '=', 'own.subject')
              .where('earlier.next_at', 'is not', null)
              .whereRef('earlier.position', '<', 'own.position'),
          ),
        ),
      )
      .orderBy('own.queue')
      .orderBy('own.turn')
      .orderBy('own.position')
      .limit(limit)
    const claimed = await this.#db
      .with('free', () => lockFreeRows(this.#db, first))
      .updateTable('webhook_deliveries')
      .set(({ eb }) => ({ owner, next_at: BigInt(until), attempts: eb('attempts', '+', 1) }))
      .where('position', 'in', (eb) => eb.selectFrom('free').select('position'))
      .returning(['position', 'event', 'attempts'])
      .execute()
    if (claimed.length === 0) return []
    return withContents(this.#db, webhook, claimed, now)
  }

  async finish(id: string, owner: string, end: AttemptEnd, now: number): Promise<void> {
    const own = { position: BigInt(id), owner }
    if (end.kind === 'gone') await this.#disable(own, end.status, now)
    else if (end.kind === 'failed') await this.#failed(own, end)
    else
      await this.#own(own)
        .set(({ eb }) =>
          end.kind === 'delivered'
            ? { ...ENDED, status: end.status, error: null, delivered_at: BigInt(now) }
            : { owner: null, next_at: BigInt(now), attempts: eb('attempts', '-', 1) },
        )
        .execute()
  }

  async prune(before: number, limit: number): Promise<number> {
    const old = this.#db
      .selectFrom('webhook_deliveries')
      .select('position')
      .where('created_at', '<', BigInt(before))
      .orderBy('created_at')
      .limit(limit)
    const { numDeletedRows } = await this.#db
      .with('free', () => lockFreeRows(this.#db, old))
      .deleteFrom('webhook_deliveries')
      .where('position', 'in', (eb) => eb.selectFrom('free').select('position'))
      .executeTakeFirst()
    if (Number(numDeletedRows) === limit) return limit
    const published = this.#db
      .selectFrom('webhook_events')
      .select('id')
      .where('at', '<', BigInt(before - EVENTS_STAY_MS))
      .orderBy('at')
      .limit(limit)
    await this.#db
      .with('free', () => lockFreeRows(this.#db, published))
      .deleteFrom('webhook_events')
      .where('id', 'in', (eb) => eb.selectFrom('free').select('id'))
      .execute()
    await this.#db
      .deleteFrom('webhook_states')
      .where('at', '<', BigInt(before))
      .where('state', 'not in', LASTING_STATES)
      .execute()
    return Number(numDeletedRows)
  }

  #own({ position, owner }: OwnDelivery) {
    return this.#db
      .updateTable('webhook_deliveries')
      .where('position', '=', position)
      .where('owner', '=', owner)
  }

  async #failed(own: OwnDelivery, end: Extract<AttemptEnd, { kind: 'failed' }>): Promise<void> {
    const next_at = toBigint(end.nextAt)
    const failed = await this.#own(own)
      .set({ owner: null, status: end.status, error: end.error, next_at })
      .returning(['webhook', 'subject'])
      .executeTakeFirst()
    if (!failed || next_at === null) return
    // Deliveries that wait for it need not be checked before.
    await this.#db
      .updateTable('webhook_deliveries')
      .set({ next_at })
      .where('webhook', '=', failed.webhook)
      .where('subject', '=', failed.subject)
      .where('position', '>', own.position)
      .where('next_at', '<', next_at)
      .execute()
  }

  async #disable(own: OwnDelivery, status: number, now: number): Promise<void> {
    await transact(this.#db, async (trx) => {
      const row = await trx
        .selectFrom('webhook_deliveries')
        .select('webhook')
        .where('position', '=', own.position)
        .where('owner', '=', own.owner)
        .executeTakeFirst()
      if (!row) return
      await trx
        .updateTable('webhooks')
        .set({ disabled_at: BigInt(now) })
        .where('id', '=', row.webhook)
        .execute()
      await trx
        .updateTable('webhook_deliveries')
        .set({ ...ENDED, status, error: GONE_ERROR })
        .where('webhook', '=', row.webhook)
        .where('next_at', 'is not', null)
        .execute()
    })
  }
}

/**
 * Whether a delivery is due: its next attempt, or the end of a claim. A time too far ahead was recorded before the
 * clock was set back.
 */
function isFree(now: number) {
  return sql<boolean>`(next_at <= ${BigInt(now)} or next_at > ${BigInt(now + LONGEST_WAIT_MS)}
    or (owner is not null and next_at > ${BigInt(now + MAX_CLAIM_MS)}))`
}

interface OwnDelivery {
  readonly position: bigint
  readonly owner: string
}

/** No process claims a delivery for longer, however far its clock is ahead. */
const MAX_CLAIM_MS = 600_000
const ENDED = { owner: null, next_at: null } as const
/** Of a subject that is announced for the first time. */
const UNANNOUNCED = ''
/** Events outlive their deliveries, which show their types. */
const EVENTS_STAY_MS = 86_400_000

function toState({ state, at }: WebhookStatesTable): AnnouncedState {
  return { state, at: Number(at) }
}
