import { assertFigure } from '../../../core/catalog/money.ts'
import { checkOptions } from '../../../core/options/index.ts'
import { budgetOfWallet } from '../../../ledger/budgets/budget.ts'
import type {
  DepositResult,
  LeaseAnswer,
  LeaseChange,
  Ledger,
  LedgerAdmin,
  LedgerCheck,
  OpenLease,
  RestoredLedger,
  Settlement,
  SettlementResult,
  WalletId,
  WalletStatement,
} from '../../../ledger/index.ts'
import { assertChange } from '../../../ledger/lease.ts'
import { assertSettlement } from '../../../ledger/plan.ts'
import { assertLimit } from '../../../ledger/wallet.ts'
import { aDatabase, checkDatabase, isPostgres } from '../driver/database.ts'
import { connectionsOf } from '../driver/postgres/postgres-dialect.ts'
import type { Database } from '../driver/tables.ts'
import { openBudgetWallets } from './budget-wallets.ts'
import { LateEntries } from './late-entries.ts'
import { rowsOfBudgets, rowsOfChanges, rowsOfSettlements, unlessLocked } from './locked-rows.ts'
import { RecentSettlements } from './recent-settlements.ts'
import { findRestored } from './restored.ts'
import { settleAll } from './settle.ts'
import { deposit, setLimit, statementsOf } from './sql-ledger-admin.ts'
import { checkLedger } from './sql-ledger-check.ts'
import { Leasing } from './sql-ledger-leases.ts'

/** More settlements at a time would hardly shorten a wait. */
const MAX_AT_ONCE = 5

/** Options of {@link SqlLedger}. */
export interface SqlLedgerOptions {
  /**
   * The database for `check`, such as a second, read-only handle of the same SQLite file. Then reading millions of
   * charges does not delay calls. Defaults to the database itself.
   */
  checks?: Database
}

/**
 * A ledger in a database, for all processes that share it. A settlement also completes the call's Idempotency-Key and
 * writes its log entry in the same transaction, in the tables of `SqlIdempotencyStore` and `SqlCallStore`.
 *
 * An operation rejects with the error of the database. Then it has done nothing, or everything if only the answer was
 * lost; a repetition returns what the first would have returned.
 *
 * @example
 * const db = await openDatabase('postgres://gateway:secret@db.internal/gateway')
 * await seedAccountsAndKeys(db, config)
 * const ledger = new SqlLedger(db)
 */
export class SqlLedger implements Ledger, LedgerAdmin {
  readonly settlesRecords = true
  readonly gathers = true
  readonly settlesAtOnce: number
  readonly #db: Database
  readonly #checks: Database
  readonly #leasing = new Leasing()
  /** SQLite has no locks of single tables. */
  readonly #late: LateEntries | undefined
  /** A SQLite file cannot be restored while a process has it. */
  readonly #recent: RecentSettlements | undefined

  constructor(db: Database, options: SqlLedgerOptions = {}) {
    checkDatabase('SqlLedger', db)
    checkOptions<SqlLedgerOptions>('SqlLedger', options, { checks: aDatabase })
    this.#db = db
    this.#checks = options.checks ?? db
    this.#late = isPostgres(db) ? new LateEntries(db) : undefined
    this.#recent = isPostgres(db) ? new RecentSettlements(db) : undefined
    this.settlesAtOnce = isPostgres(db) ? Math.max(1, Math.min(MAX_AT_ONCE, connectionsOf(db).size - 1)) : 1
  }

  async change(owner: string, changes: readonly LeaseChange[]): Promise<readonly LeaseAnswer[]> {
    changes.forEach(assertChange)
    if (changes.length === 0) return []
    const answers = await this.#change(owner, changes)
    const missing = changes.filter(
      ({ wallet }, i) => !answers[i]?.state && budgetOfWallet(wallet) !== undefined,
    )
    if (missing.length === 0) return answers
    const wallets = missing.map(({ wallet }) => wallet)
    await unlessLocked(
      this.#db,
      () => rowsOfBudgets(wallets),
      () => openBudgetWallets(this.#db, wallets),
    )
    const again = await this.#change(owner, missing)
    return changes.map((change, i) => again[missing.indexOf(change)] ?? (answers[i] as LeaseAnswer))
  }

  #change(owner: string, changes: readonly LeaseChange[]): Promise<LeaseAnswer[]> {
    const change = () => this.#leasing.change(this.#db, owner, changes)
    return unlessLocked(this.#db, () => rowsOfChanges(changes), change)
  }

  renew(leases: readonly string[], at: number): Promise<ReadonlySet<string>> {
    void this.#recent?.check()
    return this.#leasing.renew(this.#db, leases, at)
  }

  async settle(settlements: readonly Settlement[]): Promise<readonly SettlementResult[]> {
    settlements.forEach(assertSettlement)
    if (settlements.length === 0) return []
    const late = this.#late
    const settle = async () => {
      const isLogged = !late?.areDue
      const results = await settleAll(this.#db, settlements, isLogged)
      if (!isLogged) late?.keep(settlements, results)
      this.#recent?.keep(settlements, results)
      return results
    }
    const rows = () => rowsOfSettlements(settlements, !late?.areDue)
    return unlessLocked(
      this.#db,
      rows,
      settle,
      async () => !late?.areDue && (await late?.checkLocks()) === true,
    )
  }

  /** Writes log entries for which charges did not wait, as soon as that is possible. */
  async flush(): Promise<void> {
    await this.#late?.flush()
  }

  /** Returns what is known of the last time that the database was restored from a backup; null for nothing. */
  restored(): Promise<RestoredLedger | null> {
    return findRestored(this.#db)
  }

  /** Checks at once whether Postgres still knows the last charge that it has confirmed; else writes the recent ones again. */
  async reconcile(): Promise<void> {
    await this.#recent?.checkNow()
  }

  leases(): Promise<readonly OpenLease[]> {
    return this.#leasing.list(this.#db)
  }

  watch(watcher: string): Promise<readonly OpenLease[] | undefined> {
    return this.#leasing.watch(this.#db, watcher)
  }

  sweep(lease: string, beats: number): Promise<boolean> {
    return this.#leasing.sweep(this.#db, lease, beats)
  }

  async deposit(account: string, amount: bigint, reference: string, at: number): Promise<DepositResult> {
    assertFigure(amount, `deposit "${reference}"`)
    return deposit(this.#db, { account, amount, reference, at })
  }

  wallets(ids: readonly WalletId[]): Promise<readonly WalletStatement[]> {
    return statementsOf(this.#db, ids)
  }

  async setLimit(wallet: WalletId, limit: { limited: boolean; quota?: bigint }): Promise<void> {
    assertLimit(wallet, limit)
    await setLimit(this.#db, wallet, limit)
  }

  check(): Promise<LedgerCheck> {
    return checkLedger(this.#checks)
  }
}
