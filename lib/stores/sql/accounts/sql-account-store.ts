import type { ChangeOrigin } from '../../../core/change-log/index.ts'
import { holdsDeposits, repeatedDeposit } from '../../../endpoints/admin/accounts/deposit-rules.ts'
import type {
  Account,
  AccountSettings,
  AccountStore,
  DepositOutcome,
} from '../../../endpoints/admin/index.ts'
import { depositChange, settingsChange } from '../../../endpoints/admin/recorded-change.ts'
import { accountWallet } from '../../../ledger/index.ts'
import { checkDatabase } from '../driver/check-database.ts'
import { isPostgres } from '../driver/is-postgres.ts'
import type { Database } from '../driver/tables.ts'
import { deposit, setLimit } from '../ledger/sql-ledger-books.ts'
import { lockWallets } from '../ledger/sql-ledger-rows.ts'
import { accountsWithWallets, toAccount, toColumns } from './account-rows.ts'
import { recordChange } from './sql-change-log.ts'

/**
 * An account store in a database, for the admin API of all processes that share it. Each change and its row in the
 * table `admin_changes` are written in one transaction.
 *
 * @example
 * const accounts = new SqlAccountStore(await openDatabase('sqlite:.data/gateway.db'))
 */
export class SqlAccountStore implements AccountStore {
  readonly #db: Database

  constructor(db: Database) {
    checkDatabase('SqlAccountStore', db)
    this.#db = db
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

  create(id: string, settings: AccountSettings, origin: ChangeOrigin): Promise<Account | undefined> {
    return this.#db.transaction().execute(async (trx) => {
      const { numInsertedOrUpdatedRows } = await trx
        .insertInto('accounts')
        .values({ id, ...toColumns(settings), created_at: BigInt(origin.at) })
        .onConflict((conflict) => conflict.column('id').doNothing())
        .executeTakeFirst()
      if (numInsertedOrUpdatedRows === 0n) return undefined
      await setLimit(trx, accountWallet(id), { limited: settings.prepaid })
      const account = { ...settings, id, createdAt: origin.at }
      await recordChange(trx, settingsChange(account, undefined, origin))
      return account
    })
  }

  change(
    id: string,
    revise: (settings: AccountSettings) => AccountSettings,
    origin: ChangeOrigin,
  ): Promise<Account | undefined> {
    return this.#db.transaction().execute(async (trx) => {
      let query = accountsWithWallets(trx).where('accounts.id', '=', id)
      if (isPostgres(trx)) query = query.forNoKeyUpdate('accounts')
      const row = await query.executeTakeFirst()
      if (!row) return undefined
      const before = toAccount(row)
      const account = { ...revise(before), id, createdAt: before.createdAt }
      const change = settingsChange(account, before, origin)
      if (!change) return before
      await trx.updateTable('accounts').set(toColumns(account)).where('id', '=', id).execute()
      if (account.prepaid !== before.prepaid)
        await setLimit(trx, accountWallet(id), { limited: account.prepaid })
      await recordChange(trx, change)
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
    return this.#db.transaction().execute(async (trx) => {
      const account = await trx.selectFrom('accounts').select('id').where('id', '=', id).executeTakeFirst()
      if (!account) return { kind: 'no_account' }
      // The lock on the wallet gives exclusive access to its deposits.
      const wallet = (await lockWallets(trx, [accountWallet(id)])).get(accountWallet(id))
      const funds = wallet?.funds ?? 0n
      const earlier = await trx
        .selectFrom('deposits')
        .select(['amount', 'at', 'reason'])
        .where('account', '=', id)
        .where('reference', '=', reference)
        .executeTakeFirst()
      if (earlier) return repeatedDeposit({ ...earlier, at: Number(earlier.at) }, { amount, reason })
      if (!holdsDeposits(funds + amount)) return { kind: 'too_much' }
      await deposit(trx, id, amount, reference, origin.at, reason)
      await recordChange(trx, depositChange(id, { funds, amount, reference, reason }, origin))
      return { kind: 'deposited', at: origin.at, reason }
    })
  }
}
