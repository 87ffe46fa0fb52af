import { sql } from 'kysely'
import { budgetOfWallet } from '../../../ledger/budgets/budget.ts'
import type { WalletId } from '../../../ledger/index.ts'
import type { HomeStore, ShareAnswer, ShareRequest } from '../../../ledger/regions/region-store.ts'
import { checkDatabase } from '../driver/check-database.ts'
import type { Cell } from '../driver/columns.ts'
import { isLocked } from '../driver/postgres/lock-timeout.ts'
import type { Database } from '../driver/tables.ts'
import { isNotWritten, writeTogether } from '../driver/write-together.ts'
import { MARK_TOLD, TELL_REACHED } from '../ledger/budget-notices.ts'
import { openBudgetWallets } from '../ledger/budget-wallets.ts'
import type { BudgetsTable } from '../ledger/ledger-tables.ts'
import { budgetsBySecret, type HomeKey, homeBudgets, keysWithAccounts } from './mirror-rows.ts'
import { EXCHANGE, EXCHANGE_FREE } from './share-statements.ts'

/** The first report of a share may meet another one of the same region. */
const MAX_TRIES = 3
/** The code of Postgres for a table that is not there. */
const NO_TABLE = '42P01'

/**
 * The wallets of another region, in its Postgres, which may be far away: an exchange is one round trip.
 *
 * @example
 * const home = new SqlHomeStore(await openRegion('postgres://gateway:secret@db.us.internal/gateway'))
 */
export class SqlHomeStore implements HomeStore {
  readonly #db: Database

  constructor(db: Database) {
    checkDatabase('SqlHomeStore', db)
    this.#db = db
  }

  async exchange(
    region: string,
    requests: readonly ShareRequest[],
    at: number,
  ): Promise<readonly ShareAnswer[]> {
    if (requests.length === 0) return []
    const answers = await this.#exchange(region, requests, at)
    const budgets = answers.filter(({ wallet }) => budgetOfWallet(wallet) !== undefined)
    const rows = budgets.map(({ wallet }) => [wallet, at])
    await this.#tell(rows)
    const found = new Set(answers.map(({ wallet }) => wallet))
    const missing = requests.filter(
      ({ wallet }) => !found.has(wallet) && budgetOfWallet(wallet) !== undefined,
    )
    if (missing.length === 0) return answers
    // Nobody has spent of these budgets in their period at home.
    await openBudgetWallets(
      this.#db,
      missing.map(({ wallet }) => wallet),
    )
    return [...answers, ...(await this.#exchange(region, missing, at))]
  }

  /** Tells which budgets have reached their amounts; what somebody has locked is told with a later report. */
  async #tell(rows: readonly Cell[][]): Promise<void> {
    const told = rows.map(([wallet = '']) => [wallet])
    await writeTogether(this.#db, [
      { statement: TELL_REACHED, rows },
      { statement: MARK_TOLD, rows: told },
    ]).catch((error: unknown) => {
      if (!isLocked(error)) throw error
    })
  }

  async #exchange(
    region: string,
    requests: readonly ShareRequest[],
    at: number,
  ): Promise<readonly ShareAnswer[]> {
    const given = requests.map(({ wallet, seq, received, returned, spent, need, want }) => [
      ...[wallet, region, seq, received, returned, spent, need, want, at],
    ])
    // Of several, none waits for another that somebody has locked.
    let statement = requests.length > 1 ? EXCHANGE_FREE : EXCHANGE
    for (let tries = 1; ; tries++) {
      try {
        const { rows } = await statement.run(this.#db, given)
        return rows.map(({ wallet, granted, elsewhere }) => ({
          wallet: wallet as WalletId,
          granted,
          elsewhere,
        }))
      } catch (error) {
        if (tries === MAX_TRIES) throw error
        if (isLocked(error)) statement = EXCHANGE_FREE
        else if (!isNotWritten(error)) throw error
      }
    }
  }

  /** Returns the keys that have these secrets, as SHA-256, or had them before. Those of other regions are left out. */
  keysBySecret(hashes: readonly string[]): Promise<HomeKey[]> {
    return keysWithAccounts(this.#db, { by: 'secrets', wanted: hashes, copies: false })
  }

  /** Returns the budgets of the accounts of such keys. */
  budgetsBySecret(hashes: readonly string[]): Promise<BudgetsTable[]> {
    return budgetsBySecret(this.#db, hashes)
  }

  keysById(ids: readonly string[]): Promise<HomeKey[]> {
    return keysWithAccounts(this.#db, { by: 'ids', wanted: ids, copies: false })
  }

  budgetsOf(accounts: readonly string[]): Promise<BudgetsTable[]> {
    return homeBudgets(this.#db, accounts)
  }

  /** Returns those of some accounts that have their home there: none if the database has no tables yet. */
  async accountsAmong(ids: readonly string[]): Promise<readonly string[]> {
    const copies = this.#db.selectFrom('mirrors').select('account').where('account', 'in', ids)
    const own = this.#db.selectFrom('accounts').select('id').where('id', 'in', ids)
    try {
      return (await own.where('id', 'not in', copies).execute()).map(({ id }) => id)
    } catch (error) {
      if ((error as { code?: unknown }).code === NO_TABLE) return []
      throw error
    }
  }

  async ping(): Promise<void> {
    await sql`select 1`.execute(this.#db)
  }
}
