import { type CompiledQuery, type ExpressionBuilder, type Selectable, sql, type UpdateResult } from 'kysely'
import type { IdempotencyClaim } from '../../../core/call/index.ts'
import { BrokenRecord } from '../../../core/store-guard/index.ts'
import { PINNED_UNTIL } from '../../../middleware/idempotency/idempotency-store.ts'
import type {
  ClaimRequest,
  IdempotencyRecord,
  IdempotencyStore,
} from '../../../middleware/idempotency/index.ts'
import { checkDatabase } from '../driver/check-database.ts'
import { GroupedWrites } from '../driver/grouped-writes.ts'
import { isPostgres } from '../driver/is-postgres.ts'
import { isLocked } from '../driver/postgres/lock-timeout.ts'
import { lockFreeRows } from '../driver/row-locks.ts'
import type { Database, IdempotencyTable, Tables } from '../driver/tables.ts'

/** Far below the maximum depth of an expression. */
const CHUNK_CLAIMS = 100
const PINNED = BigInt(PINNED_UNTIL)

type RecordRow = Omit<Selectable<IdempotencyTable>, 'id'>
/** The id of a record that was taken, and the one that stood before; null for none. */
type TakenRow = { readonly [Name in 'taken' | keyof RecordRow]: string | bigint | null }

/**
 * An idempotency store in a database, for all processes that share it.
 *
 * A ledger that writes its charge with Kysely completes the record in the same transaction: {@link
 * SqlIdempotencyStore.completeWithin}.
 *
 * @example
 * app.use(idempotency({ store: new SqlIdempotencyStore(await openDatabase('sqlite:.data/gateway.db')) }))
 */
export class SqlIdempotencyStore implements IdempotencyStore {
  readonly #db: Database
  readonly #writes: GroupedWrites
  /** Compiled once: only the parameters differ between calls. */
  readonly #takeQuery: CompiledQuery
  readonly #completeQuery: CompiledQuery<UpdateResult>

  constructor(db: Database) {
    checkDatabase('SqlIdempotencyStore', db)
    this.#db = db
    this.#writes = new GroupedWrites(db)
    this.#takeQuery = isPostgres(db) ? takeOrFindQuery(db).compile(db) : takeQuery(db).compile()
    this.#completeQuery = completeQuery(db).compile()
  }

  async claim(request: ClaimRequest): Promise<IdempotencyRecord | undefined> {
    // SQLite has one writer at a time, for whom charges would wait: a key that is taken is only read.
    const taken = isPostgres(this.#db) ? undefined : await find(this.#db, request.id)
    if (taken && taken.expiresAt > request.now && taken.owner !== request.owner) return taken
    return this.#writes.run(request.id, async (db) => {
      for (;;) {
        const taken = await this.#take(db, request).catch((error) => lockedRecord(db, request.id, error))
        // The record is another one than when it was looked at: try to take it again.
        if (taken !== 'again') return taken
      }
    })
  }

  async renew(claims: readonly IdempotencyClaim[], leaseUntil: number): Promise<(boolean | undefined)[]> {
    const held = new Set<string>()
    const unknown = new Set<string>()
    for (let at = 0; at < claims.length; at += CHUNK_CLAIMS) {
      const chunk = claims.slice(at, at + CHUNK_CLAIMS)
      const stillHeld = (eb: ExpressionBuilder<Tables, 'idempotency'>) =>
        eb.and([eb('state', '=', 'running'), eb.or(chunk.map(({ id, owner }) => eb.and({ id, owner })))])
      const renewal = this.#db
        .updateTable('idempotency')
        .set(({ eb, ref }) => ({
          expires_at: eb
            .case()
            .when('expires_at', '=', PINNED)
            .then(ref('expires_at'))
            .else(BigInt(leaseUntil))
            .end(),
        }))
        .where(stillHeld)
        .returning(['id', 'owner'])
      const records = this.#db.selectFrom('idempotency').where(stillHeld)
      if (isPostgres(this.#db)) {
        // Several records are always locked in the order of their ids, so that no two transactions wait for each
        // other.
        const locked = records.select('id').orderBy('id').forUpdate()
        const rows = await renewal
          .where('id', 'in', locked)
          .execute()
          .catch(async (error: unknown) => {
            if (!isLocked(error)) throw error
            const renewed = await renewal.where('id', 'in', locked.skipLocked()).execute()
            for (const claim of await records.select(['id', 'owner']).execute()) unknown.add(nameOf(claim))
            return renewed
          })
        for (const claim of rows) held.add(nameOf(claim))
      } else for (const claim of await renewal.execute()) held.add(nameOf(claim))
    }
    return claims.map((claim) => held.has(nameOf(claim)) || (unknown.has(nameOf(claim)) ? undefined : false))
  }

  complete(claim: IdempotencyClaim, keepUntil: number, answer?: string): Promise<boolean> {
    return this.#writes
      .run(claim.id, (db) => this.completeWithin(db, claim, keepUntil, answer))
      .catch(busyIfLocked)
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
    const parameters = ['completed', BigInt(keepUntil), answer, id, owner]
    const { numAffectedRows = 0n } = await trx.executeQuery({ ...this.#completeQuery, parameters })
    return numAffectedRows > 0n
  }

  async release({ id, owner }: IdempotencyClaim): Promise<void> {
    const deleted = this.#writes.run(id, (db) =>
      db
        .deleteFrom('idempotency')
        .where('id', '=', id)
        .where('owner', '=', owner)
        .where('state', '=', 'running')
        .where('expires_at', '!=', PINNED)
        .execute(),
    )
    await deleted.catch(busyIfLocked)
  }

  async prune(now: number, limit: number): Promise<number> {
    const expired = this.#db
      .selectFrom('idempotency')
      .select('id')
      .where('expires_at', '<=', BigInt(now))
      .limit(limit)
    const { numDeletedRows } = await this.#db
      .deleteFrom('idempotency')
      .where('id', 'in', lockFreeRows(this.#db, expired))
      // The condition is repeated, so that Postgres checks again a record that was taken over meanwhile.
      .where('expires_at', '<=', BigInt(now))
      .executeTakeFirst()
    return Number(numDeletedRows)
  }

  /** Takes a record, and returns undefined, or the one that stands. */
  async #take(
    db: Database,
    { id, owner, fingerprint, now, leaseUntil }: ClaimRequest,
  ): Promise<IdempotencyRecord | undefined | 'again'> {
    const parameters = [id, owner, fingerprint, 'running', BigInt(leaseUntil), BigInt(now)]
    if (!isPostgres(db)) {
      const { rows } = await db.executeQuery({ ...this.#takeQuery, parameters })
      return rows.length > 0 ? undefined : ((await find(db, id)) ?? 'again')
    }
    const query = { ...this.#takeQuery, parameters: [...parameters, id] }
    const [row] = (await db.executeQuery<TakenRow>(query)).rows
    if (row && row.taken !== null) return undefined
    const standing = row && row.owner !== null && toRecord(row as RecordRow)
    return standing && standing.expiresAt > now ? standing : 'again'
  }
}

/** Asks for what stood before too, in the same round trip. The last parameter is the id once more. */
function takeOrFindQuery(db: Database) {
  return sql<TakenRow>`with taken as (${takeQuery(db)})
    select taken.id as taken, owner, fingerprint, state, expires_at, answer from (select 1) as one
    left join taken on true left join idempotency as found on found.id = ${''}`
}

/**
 * Compiles the claim as a single statement, so that only one of several concurrent claims succeeds. Parameters: id,
 * owner, fingerprint, state, end of the lease, now.
 */
function takeQuery(db: Database) {
  return db
    .insertInto('idempotency')
    .values({ id: '', owner: '', fingerprint: '', state: 'running', expires_at: 0n })
    .onConflict((conflict) =>
      conflict
        .column('id')
        .doUpdateSet(({ ref }) => ({
          owner: ref('excluded.owner'),
          fingerprint: ref('excluded.fingerprint'),
          state: ref('excluded.state'),
          expires_at: ref('excluded.expires_at'),
          // A new record has none.
          answer: ref('excluded.answer'),
        }))
        .where(({ and, eb, or, ref }) =>
          or([
            eb('idempotency.expires_at', '<=', 0n),
            and([
              eb('idempotency.owner', '=', ref('excluded.owner')),
              eb('idempotency.state', '=', ref('excluded.state')),
            ]),
          ]),
        ),
    )
    .returning('id')
}

/** Compiles the completion. Parameters: state, expiry, answer, id, owner. */
function completeQuery(db: Database) {
  return db
    .updateTable('idempotency')
    .set({ state: 'completed', expires_at: 0n, answer: '' })
    .where('id', '=', '')
    .where('owner', '=', '')
}

function nameOf({ id, owner }: IdempotencyClaim): string {
  return `${id} ${owner}`
}

/** Returns a record that somebody else has locked: it counts as running, unless it is known to have run. */
async function lockedRecord(db: Database, id: string, error: unknown): Promise<IdempotencyRecord> {
  const standing = isLocked(error) ? await find(db, id) : undefined
  if (!standing) return busyIfLocked(error)
  return standing.expiresAt > Date.now() ? standing : { ...standing, state: 'running' }
}

/** @throws {BrokenRecord} for a record that somebody else has locked; else the error itself. */
function busyIfLocked(error: unknown): never {
  if (isLocked(error)) throw new BrokenRecord('the record is locked by somebody else', { cause: error })
  throw error
}

async function find(db: Database, id: string): Promise<IdempotencyRecord | undefined> {
  const row = await db
    .selectFrom('idempotency')
    .select(['owner', 'fingerprint', 'state', 'expires_at', 'answer'])
    .where('id', '=', id)
    .executeTakeFirst()
  return row && toRecord(row)
}

function toRecord({ owner, fingerprint, state, expires_at, answer }: RecordRow): IdempotencyRecord {
  return { owner, fingerprint, state, expiresAt: Number(expires_at), ...(answer !== null && { answer }) }
}
