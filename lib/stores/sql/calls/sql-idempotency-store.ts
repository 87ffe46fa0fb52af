import type { CompiledQuery, UpdateResult } from 'kysely'
import type { IdempotencyClaim } from '../../../core/call/index.ts'
import { PINNED_UNTIL } from '../../../middleware/idempotency/idempotency-store.ts'
import type {
  ClaimRequest,
  IdempotencyRecord,
  IdempotencyStore,
} from '../../../middleware/idempotency/index.ts'
import { checkDatabase } from '../driver/check-database.ts'
import { GroupedWrites } from '../driver/grouped-writes.ts'
import { isPostgres } from '../driver/is-postgres.ts'
import { lockFreeRows } from '../driver/row-locks.ts'
import type { Database } from '../driver/tables.ts'
import { ClaimGroups } from './claim-groups.ts'
import { busyIfLocked, findRecord } from './claim-records.ts'
import { RENEW, takeQuery } from './claim-statements.ts'

const PINNED = BigInt(PINNED_UNTIL)

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
  /** Of Postgres, which may be far away. */
  readonly #groups: ClaimGroups | undefined
  readonly #writes: GroupedWrites
  /** Compiled once: only the parameters differ between calls. */
  readonly #takeQuery: CompiledQuery
  readonly #completeQuery: CompiledQuery<UpdateResult>

  constructor(db: Database) {
    checkDatabase('SqlIdempotencyStore', db)
    this.#db = db
    this.#groups = isPostgres(db) ? new ClaimGroups(db) : undefined
    this.#writes = new GroupedWrites(db)
    this.#takeQuery = takeQuery(db).compile()
    this.#completeQuery = completeQuery(db).compile()
  }

  async claim(request: ClaimRequest): Promise<IdempotencyRecord | undefined> {
    if (this.#groups) return this.#groups.claim(request)
    // There is one writer at a time, for whom charges would wait: a key that is taken is only read.
    const taken = await findRecord(this.#db, request.id)
    if (taken && taken.expiresAt > request.now && taken.owner !== request.owner) return taken
    return this.#writes.run(request.id, async (db) => {
      for (;;) {
        const taken = await this.#take(db, request)
        // The record is another one than when it was looked at: try to take it again.
        if (taken !== 'again') return taken
      }
    })
  }

  async renew(claims: readonly IdempotencyClaim[], leaseUntil: number): Promise<(boolean | undefined)[]> {
    const { rows } = await RENEW.run(
      this.#db,
      claims.map(({ id, owner }) => [id, owner, leaseUntil]),
    )
    const standing = new Map(rows.map((row) => [nameOf(row), Boolean(row.renewed)]))
    return claims.map((claim) => {
      const renewed = standing.get(nameOf(claim))
      return renewed === undefined ? false : renewed || undefined
    })
  }

  async complete(claim: IdempotencyClaim, keepUntil: number, answer?: string): Promise<boolean> {
    if (await this.#groups?.complete(claim, keepUntil, answer ?? null)) return true
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

  async release(claim: IdempotencyClaim): Promise<void> {
    if (await this.#groups?.release(claim)) return
    const { id, owner } = claim
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

  /** Takes a record, and returns undefined, or the one that stands. For SQLite. */
  async #take(
    db: Database,
    { id, owner, fingerprint, now, leaseUntil }: ClaimRequest,
  ): Promise<IdempotencyRecord | undefined | 'again'> {
    const parameters = [id, owner, fingerprint, 'running', BigInt(leaseUntil), BigInt(now)]
    const { rows } = await db.executeQuery({ ...this.#takeQuery, parameters })
    return rows.length > 0 ? undefined : ((await findRecord(db, id)) ?? 'again')
  }
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
