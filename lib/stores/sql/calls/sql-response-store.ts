import { ownRecord, type ResponseRecord, type ResponseStore } from '../../../endpoints/responses/index.ts'
import { GroupedWrites } from '../driver/grouped-writes.ts'
import { isPostgres } from '../driver/is-postgres.ts'
import type { Database } from '../driver/tables.ts'

/**
 * A response store in a database, for all processes that share it.
 *
 * @example
 * const registry = new ResponseRegistry({ store: new SqlResponseStore(await openDatabase('sqlite:.data/gateway.db')) })
 */
export class SqlResponseStore implements ResponseStore {
  readonly #db: Database
  readonly #writes: GroupedWrites

  constructor(db: Database) {
    this.#db = db
    this.#writes = new GroupedWrites(db)
  }

  async remember({ account, id, line, model, tokens, createdAt }: ResponseRecord): Promise<void> {
    const known = { line, model, tokens: BigInt(tokens), created_at: BigInt(createdAt) }
    await this.#writes.run(id, (db) =>
      db
        .insertInto('responses')
        .values({ id, account, ...known })
        .onConflict((conflict) => conflict.columns(['id', 'account']).doUpdateSet(known))
        .execute(),
    )
  }

  async find(account: string, id: string): Promise<ResponseRecord | undefined> {
    const rows = await this.#db.selectFrom('responses').selectAll().where('id', '=', id).execute()
    const records = rows.map(({ tokens, created_at, ...row }) => {
      return { ...row, tokens: Number(tokens), createdAt: Number(created_at) }
    })
    return ownRecord(records, account)
  }

  async forget(account: string, id: string): Promise<void> {
    await this.#writes.run(id, (db) =>
      db.deleteFrom('responses').where('id', '=', id).where('account', '=', account).execute(),
    )
  }

  async prune(before: number, limit: number): Promise<number> {
    let oldest = this.#db
      .selectFrom('responses')
      .select(['id', 'account'])
      .where('created_at', '<', BigInt(before))
      .orderBy('created_at')
      .limit(limit)
    // Processes that prune at the same time each get other rows.
    if (isPostgres(this.#db)) oldest = oldest.forUpdate().skipLocked()
    const { numDeletedRows } = await this.#db
      .deleteFrom('responses')
      .where(({ eb, refTuple }) => eb(refTuple('id', 'account'), 'in', oldest.$asTuple('id', 'account')))
      .executeTakeFirst()
    return Number(numDeletedRows)
  }
}
