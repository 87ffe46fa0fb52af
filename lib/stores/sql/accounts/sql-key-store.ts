import type { ChangeOrigin } from '../../../core/change-log/index.ts'
import type {
  Key,
  KeyCreation,
  KeyQuery,
  KeySettings,
  KeyStore,
  NewKey,
} from '../../../endpoints/admin/index.ts'
import { keyChange, keySettingsChange } from '../../../endpoints/admin/keys/key-change.ts'
import { keyWallet } from '../../../ledger/index.ts'
import { checkDatabase } from '../driver/check-database.ts'
import { isPostgres } from '../driver/is-postgres.ts'
import type { Database } from '../driver/tables.ts'
import { setLimit } from '../ledger/sql-ledger-books.ts'
import { keysWithWallets, toColumns, toKey } from './key-rows.ts'
import { recordChange } from './sql-change-log.ts'

/**
 * A key store in a database, for the admin API of all processes that share it; `SqlKeyDirectory` looks keys up. Each
 * change and its row in the table `admin_changes` are written in one transaction.
 *
 * @example
 * const keys = new SqlKeyStore(await openDatabase('sqlite:.data/gateway.db'))
 */
export class SqlKeyStore implements KeyStore {
  readonly #db: Database

  constructor(db: Database) {
    checkDatabase('SqlKeyStore', db)
    this.#db = db
  }

  async list({ account, after = '', limit }: KeyQuery): Promise<readonly Key[]> {
    let query = keysWithWallets(this.#db).where('keys.id', '>', after)
    if (account !== undefined) query = query.where('keys.account', '=', account)
    const rows = await query.orderBy('keys.id').limit(limit).execute()
    return rows.map(toKey)
  }

  async find(id: string): Promise<Key | undefined> {
    const row = await keysWithWallets(this.#db).where('keys.id', '=', id).executeTakeFirst()
    return row && toKey(row)
  }

  create({ secretHash, ...settings }: NewKey, origin: ChangeOrigin): Promise<KeyCreation> {
    const { id, account } = settings
    return this.#db.transaction().execute(async (trx) => {
      const owner = await trx.selectFrom('accounts').select('id').where('id', '=', account).executeTakeFirst()
      if (!owner) return { kind: 'no_account' }
      const wallet = await trx
        .selectFrom('wallets')
        .select('id')
        .where('id', '=', keyWallet(id))
        .executeTakeFirst()
      if (wallet) return { kind: 'taken' }
      const { numInsertedOrUpdatedRows } = await trx
        .insertInto('keys')
        .values({
          id,
          account,
          secret_hash: secretHash,
          ...toColumns(settings),
          created_at: BigInt(origin.at),
        })
        .onConflict((conflict) => conflict.column('id').doNothing())
        .executeTakeFirst()
      if (numInsertedOrUpdatedRows === 0n) return { kind: 'taken' }
      const key: Key = { ...settings, createdAt: origin.at }
      await this.#limit(trx, key)
      await recordChange(trx, keyChange('key.created', key, origin))
      return { kind: 'created', key }
    })
  }

  change(
    id: string,
    revise: (settings: KeySettings) => KeySettings,
    origin: ChangeOrigin,
  ): Promise<Key | undefined> {
    return this.#withKey(id, async (trx, before) => {
      const { account, createdAt } = before
      const key: Key = { ...revise(before), id, account, createdAt }
      const change = keySettingsChange(key, before, origin)
      if (!change) return before
      await trx.updateTable('keys').set(toColumns(key)).where('id', '=', id).execute()
      if (key.quota !== before.quota) await this.#limit(trx, key)
      await recordChange(trx, change)
      return key
    })
  }

  rotate(id: string, secretHash: string, origin: ChangeOrigin): Promise<Key | undefined> {
    return this.#withKey(id, async (trx, key) => {
      await trx.updateTable('keys').set({ secret_hash: secretHash }).where('id', '=', id).execute()
      await recordChange(trx, keyChange('key.rotated', key, origin))
      return key
    })
  }

  async delete(id: string, origin: ChangeOrigin): Promise<boolean> {
    const deleted = await this.#withKey(id, async (trx, key) => {
      await trx.deleteFrom('keys').where('id', '=', id).execute()
      // The wallet stays with its charges, and no config creates again what an operator has deleted.
      await trx
        .insertInto('seeds')
        .values({ kind: 'key', id, seeded_at: BigInt(origin.at) })
        .onConflict((conflict) => conflict.columns(['kind', 'id']).doNothing())
        .execute()
      await recordChange(trx, keyChange('key.deleted', key, origin))
      return key
    })
    return deleted !== undefined
  }

  /** Runs with the locked key. */
  #withKey(id: string, run: (trx: Database, key: Key) => Promise<Key | undefined>): Promise<Key | undefined> {
    return this.#db.transaction().execute(async (trx) => {
      if (isPostgres(trx))
        await trx.selectFrom('keys').select('id').where('id', '=', id).forUpdate().execute()
      const row = await keysWithWallets(trx).where('keys.id', '=', id).executeTakeFirst()
      return row && run(trx, toKey(row))
    })
  }

  #limit(trx: Database, { id, quota }: Key): Promise<void> {
    return setLimit(trx, keyWallet(id), { limited: quota !== null, quota: quota ?? 0n })
  }
}
