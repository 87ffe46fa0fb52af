import type { ChangeOrigin } from '../../../core/change-log/index.ts'
import { accountWallet } from '../../../ledger/index.ts'
import { accountChange } from '../../../management/accounts/account-store.ts'
import type { Account, AccountSettings, AccountStore, DepositOutcome } from '../../../management/index.ts'
import { checkDatabase, isPostgres } from '../driver/database.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import { transact } from '../driver/transact.ts'
import { writeTogether } from '../driver/write-together.ts'
import { limitWrite, setLimit } from '../ledger/sql-ledger-admin.ts'
import { ACCOUNT_COLUMNS, accountsWithWallets, cellsOfAccount, toAccount, toColumns } from './account-rows.ts'
import { changeWrite, recordChange } from './sql-change-log.ts'
import { SqlDeposits } from './sql-deposits.ts'

const WRITE_ACCOUNTS = RowStatement.insert('accounts', ACCOUNT_COLUMNS, 'on conflict (id) do nothing')

/**
 * An account store in a database, for the admin API of all processes that share it. Each change and its row in the
 * table `admin_changes` are written in one transaction.
 *
 * @example
 * const accounts = new SqlAccountStore(await openDatabase('sqlite:.data/gateway.db'))
 */
export class SqlAccountStore implements AccountStore {
  readonly #db: Database
  readonly #deposits: SqlDeposits

  constructor(db: Database) {
    checkDatabase('SqlAccountStore', db)
    this.#db = db
    this.#deposits = new SqlDeposits(db)
  }

  async list(limit: number, after = ''): Promise<readonly Account[]> {
    const rows = await accountsWithWallets(this.#db)
      .where('accounts.id', '>', after)
      .orderBy('accounts.id')
      .limit(limit)
      .execute()
    return rows.map(toAccount)
  }

  async find(id: string): Promise<Account | undefined> {
    const row = await accountsWithWallets(this.#db).where('accounts.id', '=', id).executeTakeFirst()
    return row && toAccount(row)
  }

  async findAll(ids: readonly string[]): Promise<ReadonlyMap<string, Account>> {
    if (ids.length === 0) return new Map()
    const rows = await accountsWithWallets(this.#db).where('accounts.id', 'in', ids).execute()
    return new Map(rows.map((row) => [row.id, toAccount(row)]))
  }

  async create(id: string, settings: AccountSettings, origin: ChangeOrigin): Promise<Account | undefined> {
    const account = { ...settings, id, createdAt: origin.at }
    const isNew = await writeTogether(this.#db, [
      { statement: WRITE_ACCOUNTS, rows: [cellsOfAccount(id, settings, origin.at)] },
      limitWrite(accountWallet(id), { limited: settings.prepaid }),
      changeWrite(accountChange(account, undefined, origin)),
    ])
    return isNew ? account : undefined
  }

  change(
    id: string,
    revise: (settings: AccountSettings) => AccountSettings,
    origin: ChangeOrigin,
  ): Promise<Account | undefined> {
    return transact(this.#db, async (trx) => {
      let query = accountsWithWallets(trx).where('accounts.id', '=', id)
      if (isPostgres(trx)) query = query.forNoKeyUpdate('accounts')
      const row = await query.executeTakeFirst()
      if (!row) return undefined
      const before = toAccount(row)
      const account = { ...revise(before), id, createdAt: before.createdAt }
      const change = accountChange(account, before, origin)
      if (!change) return before
      await trx.updateTable('accounts').set(toColumns(account)).where('id', '=', id).execute()
      await recordChange(trx, change)
      // Last: calls wait for the wallet.
      if (account.prepaid !== before.prepaid)
        await setLimit(trx, accountWallet(id), { limited: account.prepaid })
      return account
    })
  }

  deposit(
    id: string,
    amount: bigint,
    reference: string,
    origin: ChangeOrigin,
    reason: string | null = null,
  ): Promise<DepositOutcome> {
    return this.#deposits.add(id, { amount, reference, reason, origin })
  }
}
