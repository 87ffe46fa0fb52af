import { sql } from 'kysely'
import { type Logger, quietLogger } from '../../../core/call/index.ts'
import { accountWallet, keyWallet, type WalletId } from '../../../ledger/index.ts'
import type { Mirrors } from '../../../ledger/regions/region-store.ts'
import { checkDatabase } from '../driver/check-database.ts'
import { isLocked } from '../driver/postgres/lock-timeout.ts'
import { RowStatement } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import type { BudgetsTable } from '../ledger/ledger-tables.ts'
import { limitWrite } from '../ledger/sql-ledger-books.ts'
import { mirrorBudgets } from './mirror-budgets.ts'
import { AT_A_TIME, type HomeKey, keysWithAccounts, markOf } from './mirror-rows.ts'
import type { SqlHomeStore } from './sql-home-store.ts'
import { OPEN_SHARES } from './sql-share-store.ts'
import { UnlessLocked } from './unless-locked.ts'

/** What a region has of another one. */
export interface MirrorSums {
  readonly home: string
  readonly accounts: number
  /** What is left of the shares of accounts, in nano-units. */
  readonly held: bigint
}

/** Writes wallets that exist only if their limit has changed: calls wait for them. */
const DIFFERING = RowStatement.select<{ id: string }>(
  { id: 'text', limited: 'bigint' },
  `select given.id from given left join wallets as found on found.id = given.id
    where found.id is null or found.limited <> given.limited`,
)

/**
 * The copies of accounts and keys whose home is another region, in the Postgres of this one. An account has one home: where two
 * regions have one of the same id, each serves its own.
 */
export class SqlMirrors implements Mirrors {
  readonly #db: Database
  readonly #homes: ReadonlyMap<string, SqlHomeStore>
  readonly #logger: Logger
  readonly #toldOf = new Set<string>()

  constructor(db: Database, homes: ReadonlyMap<string, SqlHomeStore>, logger?: Logger) {
    checkDatabase('SqlMirrors', db)
    this.#db = db
    this.#homes = homes
    this.#logger = quietLogger(logger)
  }

  /** Returns the home of an account; undefined if it is here, or there is no such account. */
  async homeOf(account: string): Promise<string | undefined> {
    return (await this.homesOf([account])).get(account)
  }

  /** Returns the homes of accounts; those that are here, or nowhere, are left out. */
  async homesOf(accounts: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const mirrors = this.#db.selectFrom('mirrors').select(['account', 'home'])
    const rows = await mirrors.where('account', 'in', accounts).execute()
    return new Map(rows.map(({ account, home }) => [account, home]))
  }

  /** Returns what the region has of each other one. */
  async sums(): Promise<readonly MirrorSums[]> {
    const [accounts, shares] = await Promise.all([
      this.#db
        .selectFrom('mirrors')
        .select(({ fn }) => ['home', fn.countAll<bigint>().as('accounts')])
        .groupBy('home')
        .execute(),
      this.#db
        .selectFrom('shares')
        .innerJoin('wallets', 'wallets.id', 'shares.wallet')
        .select(['shares.home', ({ fn, eb }) => fn.sum<bigint>(eb('funds', '-', eb.ref('spent'))).as('held')])
        .where('shares.wallet', 'like', 'account:%' as never)
        .where('wallets.limited', '=', 1)
        .where(({ eb, ref }) => eb('wallets.funds', '>', ref('wallets.spent')))
        .groupBy('shares.home')
        .execute(),
    ])
    const held = new Map(shares.map((row) => [row.home, BigInt(row.held)]))
    return accounts.map((row) => ({
      home: row.home,
      accounts: Number(row.accounts),
      held: held.get(row.home) ?? 0n,
    }))
  }

  /**
   * Copies keys with their accounts. Returns those that are copied; an account that has its home here, or elsewhere, is not.
   *
   * @param budgets of these accounts; undefined leaves their copies as they are.
   */
  async copy(
    home: string,
    keys: readonly HomeKey[],
    budgets?: readonly BudgetsTable[],
  ): Promise<readonly HomeKey[]> {
    const copied: HomeKey[] = []
    for (const each of keys) if (await this.#copyOne(home, each, budgets)) copied.push(each)
    return copied
  }

  async refresh(home: string, ask: <T>(question: () => Promise<T>) => Promise<T>): Promise<void> {
    const store = this.#homes.get(home)
    if (!store) return
    const used = await this.#keysInUse(home)
    const perAccount = new UnlessLocked()
    const seen = new Set<string>()
    // Each page has a time limit of its own: there may be many keys, and home may be far away.
    for (let i = 0; i < used.length; i += AT_A_TIME) {
      const page = used.slice(i, i + AT_A_TIME)
      const ids = page.map(({ id }) => id)
      const accounts = [...new Set(page.map(({ account }) => account))].filter((id) => !seen.has(id))
      for (const account of accounts) seen.add(account)
      const [keys, budgets] = await Promise.all([
        ask(() => store.keysById(ids)),
        ask(() => store.budgetsOf(accounts)),
      ])
      const found = new Set(keys.map(({ key }) => key.id))
      await this.#forget(ids.filter((id) => !found.has(id)))
      const known = new Map(page.map(({ id, mark }) => [id, mark]))
      const changed = keys.filter((each) => known.get(each.key.id) !== markOf(each))
      for (const each of changed) await perAccount.run(each.account.id, () => this.copy(home, [each]))
      if (accounts.length > 0) await this.#mirrorBudgets(accounts, budgets, perAccount)
    }
    perAccount.throwIfLocked()
  }

  /** Almost always none has changed. */
  async #mirrorBudgets(
    accounts: readonly string[],
    budgets: readonly BudgetsTable[],
    perAccount: UnlessLocked,
  ): Promise<void> {
    const mirror = (some: readonly string[], own: readonly BudgetsTable[]) =>
      this.#db.transaction().execute((trx) => mirrorBudgets(trx, some, own))
    try {
      await mirror(accounts, budgets)
    } catch (error) {
      if (!isLocked(error)) throw error
      const own = Map.groupBy(budgets, ({ account }) => account)
      for (const account of accounts)
        await perAccount.run(account, () => mirror([account], own.get(account) ?? []))
    }
  }

  async expire(home: string): Promise<void> {
    const accounts = this.#db.selectFrom('mirrors').select('account').where('home', '=', home)
    const { numDeletedRows } = await this.#db
      .deleteFrom('keys')
      .where('account', 'in', accounts)
      .executeTakeFirst()
    if (numDeletedRows > 0n)
      this.#logger.error(
        { home, keys: Number(numDeletedRows) },
        'keys of a region are forgotten, which was away too long',
      )
  }

  async #forget(ids: readonly string[]): Promise<void> {
    if (ids.length > 0) await this.#db.deleteFrom('keys').where('id', 'in', ids).execute()
  }

  /** Returns the copies whose wallets are in use, each with all that a change at home can change. */
  async #keysInUse(home: string): Promise<{ id: string; account: string; mark: string }[]> {
    const ids = await this.#db
      .selectFrom('shares')
      .innerJoin('keys', (join) => join.on('shares.wallet', '=', sql<WalletId>`'key:' || keys.id`))
      .select(['keys.id'])
      .where('shares.home', '=', home)
      .where('shares.in_use', '=', 1)
      .execute()
    const wanted = ids.map(({ id }) => id)
    const copies = await keysWithAccounts(this.#db, { by: 'ids', wanted, copies: true })
    return copies.map((each) => ({ id: each.key.id, account: each.account.id, mark: markOf(each) }))
  }

  async #copyOne(home: string, from: HomeKey, budgets?: readonly BudgetsTable[]): Promise<boolean> {
    const { key, account, keyLimited, accountLimited } = from
    const wallets = [
      [accountWallet(account.id), accountLimited],
      [keyWallet(key.id), keyLimited],
    ] as const
    const isCopied = await this.#db.transaction().execute(async (trx) => {
      if (!(await this.#isMirrored(trx, account.id, home))) return false
      const { id: accountId, ...ofAccount } = account
      await trx
        .insertInto('accounts')
        .values(account)
        .onConflict((conflict) => conflict.column('id').doUpdateSet(ofAccount))
        .execute()
      if (budgets) {
        const own = budgets.filter((budget) => budget.account === account.id)
        await mirrorBudgets(trx, [account.id], own)
      }
      // At home, the secret has been given to this key since.
      const copies = trx.selectFrom('mirrors').select('account').where('home', '=', home)
      await trx
        .deleteFrom('keys')
        .where('secret_hash', '=', key.secret_hash)
        .where('id', '<>', key.id)
        .where('account', 'in', copies)
        .execute()
      const other = trx.selectFrom('keys').select('id').where('secret_hash', '=', key.secret_hash)
      if (await other.where('id', '<>', key.id).executeTakeFirst()) {
        // Its copy still has an earlier secret.
        await trx.deleteFrom('keys').where('id', '=', key.id).where('account', 'in', copies).execute()
        return false
      }
      const { id, ...ofKey } = key
      const written = await trx
        .insertInto('keys')
        .values({ ...key, last_used_at: null })
        .onConflict((conflict) =>
          conflict.column('id').doUpdateSet(ofKey).where('keys.account', '=', accountId),
        )
        .executeTakeFirst()
      if (written.numInsertedOrUpdatedRows === 0n) return false
      const now = Date.now()
      await OPEN_SHARES.run(
        trx,
        wallets.map(([wallet]) => [wallet, home, now]),
      )
      // Last: calls wait for wallets.
      const { rows } = await DIFFERING.run(
        trx,
        wallets.map(([wallet, limited]) => [wallet, Number(limited)]),
      )
      const differing = new Set(rows.map((row) => row.id))
      for (const [wallet, limited] of wallets) {
        const { statement, rows: given } = limitWrite(wallet, { limited })
        if (differing.has(wallet)) await statement.run(trx, given)
      }
      return true
    })
    if (!isCopied) this.#tellTaken(home, account.id, key.id)
    return isCopied
  }

  /** Whether an account is a copy, which it becomes if this region has none of that id. */
  async #isMirrored(trx: Database, account: string, home: string): Promise<boolean> {
    const mirrors = trx.selectFrom('mirrors').select('home').where('account', '=', account)
    // Of a copy that is made meanwhile, both rows come at once: the first one read is the one that a copy does not decide.
    const own = await trx.selectFrom('accounts').select('id').where('id', '=', account).executeTakeFirst()
    const mirror = await mirrors.executeTakeFirst()
    if (mirror) return mirror.home === home
    if (own) return false
    await trx
      .insertInto('mirrors')
      .values({ account, home, mirrored_at: BigInt(Date.now()) })
      .onConflict((conflict) => conflict.column('account').doNothing())
      .execute()
    return (await mirrors.executeTakeFirst())?.home === home
  }

  #tellTaken(home: string, account: string, key: string): void {
    if (this.#toldOf.has(key)) return
    this.#toldOf.add(key)
    this.#logger.error(
      { home, account, key },
      'an account or key of another region is not served here, because this region has one of the same id or secret: give one another',
    )
  }
}
