import { sql } from 'kysely'
import type {
  AnnouncedState,
  Announcement,
  AttemptEnd,
  ClaimedDelivery,
  CreatedDeliveries,
  DeliveryClaim,
  WebhookEvent,
  WebhookOutbox,
} from '../../../webhooks/index.ts'
import { GONE_ERROR, LASTING_STATES, LONGEST_WAIT_MS } from '../../../webhooks/index.ts'
import { checkDatabase } from '../driver/check-database.ts'
import { toBigint, toNumber } from '../driver/nullable-cells.ts'
import { lockFreeRows, lockRows } from '../driver/row-locks.ts'
import type { Database } from '../driver/tables.ts'
import { withContents } from './claimed-contents.ts'
import { createDeliveries } from './create-deliveries.ts'
import { recordEvents, recordLast } from './event-rows.ts'
import type { WebhookStatesTable } from './webhook-tables.ts'

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
    return this.#db.transaction().execute(async (trx) => {
      // Whoever announces a new subject at the same time waits for this row.
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
      .orderBy('own.next_at')
      .orderBy('own.position')
      .limit(limit)
    const claimed = await this.#db
      .updateTable('webhook_deliveries')
      .set(({ eb }) => ({ owner, next_at: BigInt(until), attempts: eb('attempts', '+', 1) }))
      .where('position', 'in', lockFreeRows(this.#db, first))
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
      .deleteFrom('webhook_deliveries')
      .where('position', 'in', lockFreeRows(this.#db, old))
      .executeTakeFirst()
    if (Number(numDeletedRows) === limit) return limit
    const told = this.#db
      .selectFrom('webhook_events')
      .select('id')
      .where('at', '<', BigInt(before - EVENTS_STAY_MS))
      .orderBy('at')
      .limit(limit)
    await this.#db.deleteFrom('webhook_events').where('id', 'in', lockFreeRows(this.#db, told)).execute()
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
    // What waits for it need not be looked at before.
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
    await this.#db.transaction().execute(async (trx) => {
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
 * Whether a delivery is due: its next attempt, or the end of a claim. What seems further ahead than any is was noted before the
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

/** No process claims a delivery for longer, whatever its clock is ahead. */
const MAX_CLAIM_MS = 600_000
const ENDED = { owner: null, next_at: null } as const
/** Of a subject that is announced for the first time. */
const UNANNOUNCED = ''
/** Events outlive their deliveries, which show their types. */
const EVENTS_STAY_MS = 86_400_000

function toState({ state, at }: WebhookStatesTable): AnnouncedState {
  return { state, at: Number(at) }
}
