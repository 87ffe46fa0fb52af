import type { ChangeOrigin } from '../../../core/change-log/index.ts'
import { keyWallet } from '../../../ledger/index.ts'
import type { Key, KeyCreation, KeyQuery, KeySettings, KeyStore, NewKey } from '../../../management/index.ts'
import { keyChange, keySettingsChange } from '../../../management/keys/key-store.ts'
import { toBigint } from '../driver/columns.ts'
import { checkDatabase, isPostgres } from '../driver/database.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import { transact } from '../driver/transact.ts'
import { setLimit } from '../ledger/sql-ledger-admin.ts'
import { keysWithWallets, toColumns, toKey } from './key-rows.ts'
import { recordChange } from './sql-change-log.ts'

const NOTE_USES = RowStatement.update(
  'keys',
  { id: 'text', at: 'bigint' },
  'last_used_at = given.at',
  'found.id = given.id and (found.last_used_at is null or found.last_used_at < given.at)',
)

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

  async findAll(ids: readonly string[]): Promise<ReadonlyMap<string, Key>> {
    if (ids.length === 0) return new Map()
    const rows = await keysWithWallets(this.#db).where('keys.id', 'in', ids).execute()
    return new Map(rows.map((row) => [row.id, toKey(row)]))
  }

  async findOwners(secretHashes: readonly string[]): Promise<ReadonlyMap<string, string>> {
    if (secretHashes.length === 0) return new Map()
    const query = this.#db.selectFrom('keys').select(['id', 'secret_hash'])
    const rows = await query.where('secret_hash', 'in', secretHashes).execute()
    return new Map(rows.map(({ id, secret_hash }) => [secret_hash, id]))
  }

  create({ secretHash, restores = false, ...settings }: NewKey, origin: ChangeOrigin): Promise<KeyCreation> {
    const { id, account } = settings
    return transact(this.#db, async (trx) => {
      const owner = await trx.selectFrom('accounts').select('id').where('id', '=', account).executeTakeFirst()
      if (!owner) return { kind: 'no_account' }
      const wallet = await trx
        .selectFrom('wallets')
        .select('id')
        .where('id', '=', keyWallet(id))
        .executeTakeFirst()
      if (wallet && !restores) return { kind: 'taken' }
      const { numInsertedOrUpdatedRows } = await trx
        .insertInto('keys')
        .values({
          id,
          account,
          secret_hash: secretHash,
          ...toColumns(settings),
          created_at: BigInt(origin.at),
        })
        // Of two at once, the second may meet the secret before the id.
        .onConflict((conflict) => conflict.doNothing())
        .executeTakeFirst()
      if (numInsertedOrUpdatedRows === 0n) return { kind: 'taken' }
      const key: Key = { ...settings, createdAt: origin.at, lastUsedAt: null, previousUntil: null }
      await recordChange(trx, keyChange('key.created', key, origin))
      await this.#limit(trx, key)
      return { kind: 'created', key }
    })
  }

  change(
    id: string,
    revise: (key: Key) => KeySettings & Partial<Pick<Key, 'account'>>,
    origin: ChangeOrigin,
  ): Promise<Key | undefined> {
    return this.#withKey(id, async (trx, before) => {
      const key: Key = { ...before, ...revise(before), id }
      const change = keySettingsChange(key, before, origin)
      if (!change) return before
      await trx
        .updateTable('keys')
        .set({ ...toColumns(key), account: key.account })
        .where('id', '=', id)
        .execute()
      await recordChange(trx, change)
      // Last: calls wait for the wallet.
      if (key.quota !== before.quota) await this.#limit(trx, key)
      return key
    })
  }

  rotate(id: string, secretHash: string, origin: ChangeOrigin, overlapMs = 0): Promise<Key | undefined> {
    return this.#withKey(id, async (trx, before, currentHash) => {
      if (currentHash === secretHash) return before
      const previousUntil = overlapMs === 0 ? null : origin.at + overlapMs
      const key = { ...before, previousUntil }
      await trx
        .updateTable('keys')
        .set({
          secret_hash: secretHash,
          previous_hash: previousUntil === null ? null : currentHash,
          previous_until: toBigint(previousUntil),
        })
        .where('id', '=', id)
        .execute()
      await recordChange(trx, keyChange('key.rotated', key, origin))
      return key
    })
  }

  async noteUses(uses: ReadonlyMap<string, number>): Promise<void> {
    await NOTE_USES.run(
      this.#db,
      [...uses].map(([id, at]) => [id, BigInt(at)]),
    )
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

  #withKey(
    id: string,
    run: (trx: Database, key: Key, secretHash: string) => Promise<Key | undefined>,
  ): Promise<Key | undefined> {
    return transact(this.#db, async (trx) => {
      if (isPostgres(trx))
        await trx.selectFrom('keys').select('id').where('id', '=', id).forUpdate().execute()
      const row = await keysWithWallets(trx).where('keys.id', '=', id).executeTakeFirst()
      return row && run(trx, toKey(row), row.secret_hash)
    })
  }

  #limit(trx: Database, { id, quota }: Key): Promise<void> {
    return setLimit(trx, keyWallet(id), { limited: quota !== null, quota: quota ?? 0n })
  }
}
