import type { Selectable } from 'kysely'
import type { IdempotencyClaim } from '../../../core/call/index.ts'
import {
  type ClaimRequest,
  type IdempotencyRecord,
  type IdempotencyStore,
  PINNED_UNTIL,
} from '../../../core/idempotency/index.ts'
import { BrokenRecord } from '../../../core/store-guard/index.ts'
import type { Cell } from '../driver/columns.ts'
import { checkDatabase, isPostgres } from '../driver/database.ts'
import { Groups } from '../driver/groups.ts'
import { isLocked } from '../driver/postgres/lock-timeout.ts'
import { connectionsOf } from '../driver/postgres/postgres-dialect.ts'
import { lockFreeRows } from '../driver/row-locks.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database, IdempotencyTable } from '../driver/tables.ts'

type Row = Selectable<IdempotencyTable>

/** @throws {BrokenRecord} for a record that another transaction has locked; else the error itself. */
function busyIfLocked(error: unknown): never {
  if (isLocked(error)) throw new BrokenRecord('the record is locked by somebody else', { cause: error })
  throw error
}

/*
 * The records of Idempotency-Keys, many in a statement. Records that another transaction has locked are left out first, so
 * that they delay no others; these are locked in the order of their ids.
 */

const FIND = RowStatement.select<Row>(
  { id: 'text' },
  'select found.* from given join idempotency as found on found.id = given.id',
)

/** Opens the records of keys that have none. */
const OPEN = RowStatement.insert<{ id: string }>(
  'idempotency',
  { id: 'text', owner: 'text', fingerprint: 'text', state: 'text', expires_at: 'bigint' },
  'on conflict (id) do nothing',
  {
    unless: 'select 1 from idempotency as found where found.id = given.id',
    loose: true,
    returning: 'id',
  },
)

/** Takes records that have expired, or that their owner claims once more. */
const takingOver = (locks: true | 'free ones') =>
  RowStatement.update<{ id: string }>(
    'idempotency',
    { id: 'text', owner: 'text', fingerprint: 'text', until: 'bigint', now: 'bigint' },
    `owner = given.owner, fingerprint = given.fingerprint, state = 'running', expires_at = given.until, answer = null`,
    `found.id = given.id and (found.expires_at <= given.now or (found.owner = given.owner and found.state = 'running'))`,
    { locks, loose: true, returning: 'id' },
  )

/** Renews claims. A pinned one stays as it is. */
const RENEW = RowStatement.update<IdempotencyClaim>(
  'idempotency',
  { id: 'text', owner: 'text', until: 'bigint' },
  `expires_at = case found.expires_at when ${PINNED_UNTIL} then found.expires_at else given.until end`,
  `found.id = given.id and found.owner = given.owner and found.state = 'running'`,
  { locks: 'free ones', loose: true, returning: 'id, owner' },
)

const completing = (locks: true | 'free ones') =>
  RowStatement.update<IdempotencyClaim>(
    'idempotency',
    { id: 'text', owner: 'text', keep_until: 'bigint', answer: 'text' },
    `state = 'completed', expires_at = given.keep_until, answer = given.answer`,
    'found.id = given.id and found.owner = given.owner',
    { locks, loose: true, returning: 'id, owner' },
  )

const releasing = (locks: true | 'free ones') =>
  RowStatement.delete<IdempotencyClaim>(
    'idempotency',
    { id: 'text', owner: 'text' },
    `found.id = given.id and found.owner = given.owner and found.state = 'running'
      and found.expires_at <> ${PINNED_UNTIL}`,
    { locks, returning: 'id, owner' },
  )

/** A statement without the records that another transaction has locked, and one that waits for them. */
const TAKE_OVER = { free: takingOver('free ones'), all: takingOver(true) }
const COMPLETE = { free: completing('free ones'), all: completing(true) }
const RELEASE = { free: releasing('free ones'), all: releasing(true) }

/** More groups at a time would hardly shorten a wait, and others need connections too. */
const MAX_AT_ONCE = 6

/**
 * The result of a claim: it was made, or another record stands. `again`: another one was made meanwhile. `locked`: it has
 * run out, and another transaction has locked it, such as to take it over.
 */
type Claimed = IdempotencyRecord | 'taken' | 'again' | 'locked'

/**
 * An idempotency store in a database, for all processes that share it. Operations that come at the same time share a statement: the
 * database may be far away.
 *
 * A ledger that writes its charge with Kysely completes the record in the same transaction: {@link
 * SqlIdempotencyStore.completeWithin}.
 *
 * @example
 * app.use(idempotency({ store: new SqlIdempotencyStore(await openDatabase('sqlite:.data/gateway.db')) }))
 */
export class SqlIdempotencyStore implements IdempotencyStore {
  readonly #db: Database
  readonly #claims: Groups<ClaimRequest, Claimed>
  readonly #completions: Groups<readonly Cell[], boolean>
  readonly #releases: Groups<readonly Cell[], boolean>

  constructor(db: Database) {
    checkDatabase('SqlIdempotencyStore', db)
    this.#db = db
    // SQLite has one writer.
    const atOnce = isPostgres(db) ? Math.min(MAX_AT_ONCE, Math.max(1, connectionsOf(db).size - 1)) : 1
    this.#claims = new Groups({ atOnce, ask: (group) => this.#take(group) })
    this.#completions = new Groups({ atOnce, ask: (group) => this.#written(COMPLETE.free, group) })
    this.#releases = new Groups({ atOnce, ask: (group) => this.#free(group) })
  }

  async claim(request: ClaimRequest): Promise<IdempotencyRecord | undefined> {
    for (;;) {
      let claimed = await this.#claims.run(request)
      if (claimed === 'locked') claimed = await this.#takeLocked(request)
      if (claimed !== 'again' && claimed !== 'locked') return claimed === 'taken' ? undefined : claimed
    }
  }

  async renew(claims: readonly IdempotencyClaim[], leaseUntil: number): Promise<(boolean | undefined)[]> {
    const rows = claims.map(({ id, owner }) => [id, owner, leaseUntil])
    const renewed = new Set((await RENEW.run(this.#db, rows)).rows.map(nameOf))
    const others = claims.filter((claim) => !renewed.has(nameOf(claim)))
    const locked = new Set((await this.#find(others)).filter(({ state }) => state === 'running').map(nameOf))
    return claims.map(
      (claim) => renewed.has(nameOf(claim)) || (locked.has(nameOf(claim)) ? undefined : false),
    )
  }

  async complete(claim: IdempotencyClaim, keepUntil: number, answer?: string): Promise<boolean> {
    const row = [claim.id, claim.owner, keepUntil, answer ?? null]
    if (await this.#completions.run(row)) return true
    return this.completeWithin(this.#db, claim, keepUntil, answer).catch(busyIfLocked)
  }

  /**
   * Does {@link IdempotencyStore.complete} within another transaction, so that its other writes are committed only
   * together with the completed record. Roll the transaction back if this returns false.
   *
   * @example
   * await db.transaction().execute(async (trx) => {
   *   if (!(await store.completeWithin(trx, claim, Date.now() + 86_400_000))) throw new Error('claim lost')
   *   await writeCharge(trx)
   * })
   */
  async completeWithin(
    trx: Database,
    { id, owner }: IdempotencyClaim,
    keepUntil: number,
    answer: string | null = null,
  ): Promise<boolean> {
    return (await COMPLETE.all.run(trx, [[id, owner, keepUntil, answer]])).rows.length > 0
  }

  async release({ id, owner }: IdempotencyClaim): Promise<void> {
    if (await this.#releases.run([id, owner])) return
    await RELEASE.all.run(this.#db, [[id, owner]]).catch(busyIfLocked)
  }

  async prune(now: number, limit: number): Promise<number> {
    const expired = this.#db
      .selectFrom('idempotency')
      .select('id')
      .where('expires_at', '<=', BigInt(now))
      .limit(limit)
    const { numDeletedRows } = await this.#db
      .with('free', () => lockFreeRows(this.#db, expired))
      .deleteFrom('idempotency')
      .where('id', 'in', (eb) => eb.selectFrom('free').select('id'))
      // The condition is repeated, so that Postgres checks again a record that was taken over meanwhile.
      .where('expires_at', '<=', BigInt(now))
      .executeTakeFirst()
    return Number(numDeletedRows)
  }

  /** Takes records. Of several claims of a key only the first is sent. */
  async #take(group: readonly ClaimRequest[]): Promise<Claimed[]> {
    const firstOf = new Map(group.toReversed().map((request) => [request.id, request]))
    const first = [...firstOf.values()]
    const opened = await OPEN.run(
      this.#db,
      first.map(({ id, owner, fingerprint, leaseUntil }) => [id, owner, fingerprint, 'running', leaseUntil]),
    )
    const taken = new Set(opened.rows.map(({ id }) => id))
    const standing = await this.#find(first.filter(({ id }) => !taken.has(id)))
    const records = new Map(standing.map((row) => [row.id, recordOf(row)]))
    const due = first.filter((request) => isFree(records.get(request.id), request))
    for (const { id } of (await TAKE_OVER.free.run(this.#db, due.map(takeOverRow))).rows) taken.add(id)
    return group.map((request) => {
      const isFirst = firstOf.get(request.id) === request
      if (taken.has(request.id)) return isFirst ? 'taken' : 'again'
      const record = records.get(request.id)
      if (record && !isFree(record, request)) return record
      return record && isFirst ? 'locked' : 'again'
    })
  }

  /** Takes a record that another transaction has locked. One that stays locked counts as running, unless it is known to have run. */
  async #takeLocked(request: ClaimRequest): Promise<Claimed> {
    try {
      const { rows } = await TAKE_OVER.all.run(this.#db, [takeOverRow(request)])
      return rows.length > 0 ? 'taken' : 'again'
    } catch (error) {
      const [row] = isLocked(error) ? await this.#find([request]) : []
      if (!row) return busyIfLocked(error)
      const record = recordOf(row)
      return record.expiresAt > request.now ? record : { ...record, state: 'running' }
    }
  }

  /** Frees records. Returns for each claim whether that is done; false: another transaction has locked its record. */
  async #free(rows: readonly (readonly Cell[])[]): Promise<boolean[]> {
    const freed = await this.#written(RELEASE.free, rows)
    const others = rows.filter((_, i) => !freed[i]).map(([id]) => ({ id: `${id}` }))
    const running = (await this.#find(others)).filter(({ state }) => state === 'running')
    const left = new Set(running.map(nameOf))
    return rows.map(([id, owner], i) => freed[i] || !left.has(`${id} ${owner}`))
  }

  async #find(claims: readonly { readonly id: string }[]): Promise<Row[]> {
    const { rows } = await FIND.run(
      this.#db,
      claims.map(({ id }) => [id]),
    )
    return rows
  }

  /** Writes records, whose first cells are the id and the owner, and returns for each whether it was written. */
  async #written(
    statement: RowStatement<IdempotencyClaim>,
    rows: readonly (readonly Cell[])[],
  ): Promise<boolean[]> {
    const written = new Set((await statement.run(this.#db, rows)).rows.map(nameOf))
    return rows.map(([id, owner]) => written.has(`${id} ${owner}`))
  }
}

function takeOverRow({ id, owner, fingerprint, leaseUntil, now }: ClaimRequest): Cell[] {
  return [id, owner, fingerprint, leaseUntil, now]
}

/** Whether a record can be taken. */
function isFree(record: IdempotencyRecord | undefined, { owner, now }: ClaimRequest): boolean {
  if (!record) return false
  return record.expiresAt <= now || (record.owner === owner && record.state === 'running')
}

function recordOf({ owner, fingerprint, state, expires_at, answer }: Row): IdempotencyRecord {
  return { owner, fingerprint, state, expiresAt: Number(expires_at), ...(answer !== null && { answer }) }
}

function nameOf({ id, owner }: IdempotencyClaim): string {
  return `${id} ${owner}`
}
