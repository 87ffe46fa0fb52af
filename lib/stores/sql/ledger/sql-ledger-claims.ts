import { sql } from 'kysely'
import type { IdempotencyClaim } from '../../../core/call/index.ts'
import { PINNED_UNTIL } from '../../../middleware/idempotency/idempotency-store.ts'
import { isPostgres } from '../driver/is-postgres.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database, IdempotencyTable } from '../driver/tables.ts'

/** The Idempotency-Keys of settlements and video tasks: what `SqlIdempotencyStore` does with one, for many at a time. */
export class ClaimRows {
  readonly #complete: RowStatement<Pick<IdempotencyTable, 'id' | 'owner'>>
  readonly #free: RowStatement

  constructor(db: Database) {
    // Locked in the order of their ids, as by all who write several.
    const locked = isPostgres(db) ? sql`order by record.id for update of record` : sql``
    const own = sql`given join idempotency as record on record.id = given.id and record.owner = given.owner`
    this.#complete = new RowStatement(
      db,
      { id: 'text', owner: 'text', keep_until: 'bigint' },
      sql`
      update idempotency set state = 'completed', expires_at = held.keep_until
      from (select record.id, given.keep_until from ${own} ${locked}) as held
      where idempotency.id = held.id returning idempotency.id, idempotency.owner`,
    )
    this.#free = new RowStatement(
      db,
      { id: 'text', owner: 'text' },
      sql`delete from idempotency where id in (select record.id from ${own} ${locked})`,
    )
  }

  /**
   * Completes records within a transaction.
   *
   * @returns those that are still their owner's, each as {@link claimName}.
   */
  async complete(
    trx: Database,
    claims: readonly (IdempotencyClaim & { readonly keepUntil: number })[],
  ): Promise<Set<string>> {
    const rows = await this.#complete.run(
      trx,
      claims.map(({ id, owner, keepUntil }) => [id, owner, keepUntil]),
    )
    return new Set(rows.map(claimName))
  }

  /**
   * Keeps a record from being free by itself, until it is completed or freed.
   *
   * @returns false where the claim is not its owner's any more.
   */
  async pin(trx: Database, { id, owner }: IdempotencyClaim): Promise<boolean> {
    const { numUpdatedRows } = await trx
      .updateTable('idempotency')
      .set({ expires_at: BigInt(PINNED_UNTIL) })
      .where('id', '=', id)
      .where('owner', '=', owner)
      .where('state', '=', 'running')
      .executeTakeFirst()
    return numUpdatedRows > 0n
  }

  /** Frees those records that are still their owner's, completed or not. */
  async free(trx: Database, claims: readonly IdempotencyClaim[]): Promise<void> {
    await this.#free.run(
      trx,
      claims.map(({ id, owner }) => [id, owner]),
    )
  }
}

/** One name for a record and its owner. */
export function claimName({ id, owner }: IdempotencyClaim): string {
  return `${id} ${owner}`
}
