import { assertChange, assertFigure, assertLimit, assertSettlement } from '../../../ledger/amounts.ts'
import type {
  DepositResult,
  LeaseAnswer,
  LeaseChange,
  Ledger,
  LedgerBooks,
  LedgerCheck,
  OpenLease,
  Settlement,
  SettlementResult,
  WalletId,
  WalletStatement,
} from '../../../ledger/index.ts'
import { threadOf } from '../driver/sqlite/sqlite-dialect.ts'
import type { Database } from '../driver/tables.ts'
import { PostgresSettling } from './postgres-settling.ts'
import { cellsOf } from './settlement-cells.ts'
import { Books } from './sql-ledger-books.ts'
import { checkLedger } from './sql-ledger-check.ts'
import { Leasing } from './sql-ledger-leases.ts'
import { LeaseRows, WalletRows } from './sql-ledger-rows.ts'
import { Settling, settlementRowOf } from './sql-ledger-settle.ts'

/** Options of {@link SqlLedger}. */
export interface SqlLedgerOptions {
  /**
   * Where `check` reads, such as a second, read-only handle of the same SQLite file: going through millions of charges
   * then holds up no call. Defaults to the database itself.
   */
  checks?: Database
}

/**
 * Money in a database, for all processes that share it. A settlement also completes the call's Idempotency-Key and
 * writes its log entry, in the same transaction: in the tables of `SqlIdempotencyStore` and `SqlCallStore`.
 *
 * Operations reject with what the database throws, and have done nothing then, or all of it where only the answer was
 * lost; asked again, they answer as they would have.
 *
 * @example
 * const db = await openDatabase('postgres://gateway:secret@db.internal/gateway')
 * await seedAccountsAndKeys(db, config)
 * const ledger = new SqlLedger(db)
 */
export class SqlLedger implements Ledger, LedgerBooks {
  readonly settlesRecords = true
  readonly gathers = true
  readonly #db: Database
  readonly #checks: Database
  readonly #leasing: Leasing
  readonly #settling: Settling
  readonly #atOnce: PostgresSettling | undefined
  readonly #books: Books

  constructor(db: Database, options: SqlLedgerOptions = {}) {
    const wallets = new WalletRows(db)
    const leases = new LeaseRows(db)
    this.#db = db
    this.#checks = options.checks ?? db
    this.#leasing = new Leasing(db, wallets, leases)
    this.#settling = new Settling(db)
    this.#atOnce = PostgresSettling.on(db)
    this.#books = new Books(wallets)
  }

  async change(owner: string, changes: readonly LeaseChange[]): Promise<readonly LeaseAnswer[]> {
    changes.forEach(assertChange)
    if (changes.length === 0) return []
    return this.#db.transaction().execute((trx) => this.#leasing.change(trx, owner, changes))
  }

  renew(leases: readonly string[], at: number): Promise<ReadonlySet<string>> {
    return this.#leasing.renew(this.#db, leases, at)
  }

  async settle(settlements: readonly Settlement[]): Promise<readonly SettlementResult[]> {
    settlements.forEach(assertSettlement)
    if (settlements.length === 0) return []
    const thread = threadOf(this.#db)
    // One message there and back, instead of one for each statement.
    if (thread) return this.#db.connection().execute(() => thread.settle(cellsOf(settlements)))
    const rows = settlements.map(settlementRowOf)
    const results = await this.#atOnce?.settle(rows)
    return results ?? this.#db.transaction().execute((trx) => this.#settling.settle(trx, rows))
  }

  leases(): Promise<readonly OpenLease[]> {
    return this.#leasing.list(this.#db)
  }

  sweep(lease: string, beats: number): Promise<boolean> {
    return this.#db.transaction().execute((trx) => this.#leasing.sweep(trx, lease, beats))
  }

  async deposit(account: string, amount: bigint, reference: string, at: number): Promise<DepositResult> {
    assertFigure(amount, `deposit "${reference}"`)
    return this.#db.transaction().execute((trx) => this.#books.deposit(trx, account, amount, reference, at))
  }

  wallets(ids: readonly WalletId[]): Promise<readonly WalletStatement[]> {
    return this.#books.statements(this.#db, ids)
  }

  async setLimit(wallet: WalletId, limit: { limited: boolean; quota?: bigint }): Promise<void> {
    assertLimit(wallet, limit)
    await this.#db.transaction().execute((trx) => this.#books.setLimit(trx, wallet, limit))
  }

  check(): Promise<LedgerCheck> {
    return checkLedger(this.#checks)
  }
}
