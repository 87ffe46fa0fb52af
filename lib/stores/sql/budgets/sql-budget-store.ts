import type { ChangeOrigin } from '../../../core/change-log/index.ts'
import { checkOptions } from '../../../core/options/index.ts'
import {
  budgetChange,
  budgetTermsChange,
  walletsToChange,
} from '../../../endpoints/admin/budgets/budget-change.ts'
import {
  type BudgetCreation,
  type BudgetQuery,
  type BudgetStore,
  MAX_BUDGETS,
} from '../../../endpoints/admin/budgets/budget-store.ts'
import type { Budget, BudgetTerms } from '../../../ledger/budgets/budget.ts'
import type { BudgetChanges } from '../../../ledger/budgets/budgets.ts'
import type { WalletId } from '../../../ledger/index.ts'
import { changeWrite } from '../accounts/sql-change-log.ts'
import { aDatabase, checkDatabase } from '../driver/check-database.ts'
import type { Database } from '../driver/tables.ts'
import { type Planned, writePlanned } from '../driver/write-together.ts'
import { DROP_UNTOLD, MARK_TOLD, noteWrites, TELL_REACHED, tellRefused } from '../ledger/budget-notices.ts'
import type { BudgetsTable } from '../ledger/ledger-tables.ts'
import { limitWrite } from '../ledger/sql-ledger-books.ts'
import { budgetWrites } from './budget-writes.ts'

const MAX_TRIES = 50
/** Changes are read under a time limit, and each page is taken in at once. */
const PAGE_ROWS = 1000

/** Options of {@link SqlBudgetStore}. */
export interface SqlBudgetStoreOptions {
  /**
   * The database for the look-ups of every process, every few seconds, such as a read-only handle that no write blocks.
   * Defaults to the database itself.
   */
  lookUps?: Database
}

/**
 * A budget store in a database, for all processes that share it. Each change, the wallets of the ledger and the row in the
 * table `admin_changes` are written in one transaction.
 *
 * @example
 * const budgets = new SqlBudgetStore(await openDatabase('sqlite:.data/gateway.db'))
 */
export class SqlBudgetStore implements BudgetStore {
  readonly #db: Database
  readonly #lookUps: Database

  constructor(db: Database, options: SqlBudgetStoreOptions = {}) {
    checkDatabase('SqlBudgetStore', db)
    checkOptions<SqlBudgetStoreOptions>('SqlBudgetStore', options, { lookUps: aDatabase })
    this.#db = db
    this.#lookUps = options.lookUps ?? db
  }

  async list({ account, after = '', limit }: BudgetQuery): Promise<readonly Budget[]> {
    let query = this.#db.selectFrom('budgets').selectAll().where('deleted', '=', 0).where('id', '>', after)
    if (account !== undefined) query = query.where('account', '=', account)
    return (await query.orderBy('id').limit(limit).execute()).map(toBudget)
  }

  async find(id: string): Promise<Budget | undefined> {
    const row = await budgetRow(this.#db, id).executeTakeFirst()
    return row && toBudget(row)
  }

  create(budget: Budget, origin: ChangeOrigin): Promise<BudgetCreation> {
    const { account, key } = budget.scope
    return this.#plan<BudgetCreation>(async () => {
      const [owner, found, { count }] = await Promise.all([
        this.#db.selectFrom('accounts').select('id').where('id', '=', account).executeTakeFirst(),
        this.#db.selectFrom('keys').select('account').where('id', '=', key).executeTakeFirst(),
        this.#db
          .selectFrom('budgets')
          .select(({ fn }) => fn.countAll<bigint>().as('count'))
          .where('account', '=', account)
          .where('deleted', '=', 0)
          .executeTakeFirstOrThrow(),
      ])
      if (!owner) return refused('no_account')
      if (key !== null && found?.account !== account) return refused('no_key')
      if (Number(count) >= MAX_BUDGETS) return refused('too_many')
      const opened = budgetWrites({ ...toRow(budget), was: undefined, deleted: 0 })
      const change = changeWrite(budgetChange('budget.created', budget, origin))
      return { writes: [...opened, change], result: 'created' }
    })
  }

  change(
    id: string,
    revise: (terms: BudgetTerms) => BudgetTerms,
    origin: ChangeOrigin,
  ): Promise<Budget | undefined> {
    return this.#plan(async () => {
      const row = await budgetRow(this.#db, id).executeTakeFirst()
      if (!row) return { writes: [], result: undefined }
      const before = toBudget(row)
      const budget = { ...before, ...revise(before) }
      const change = budgetTermsChange(budget, before, origin)
      if (!change) return { writes: [], result: before }
      const wallets = walletsToChange(budget, origin.at)
      const limit = { limited: budget.hard, quota: budget.amount }
      return {
        writes: [
          ...budgetWrites({ ...toRow(budget), was: row.version, deleted: 0 }),
          ...wallets.map((wallet) => limitWrite(wallet, limit)),
          ...noteWrites(wallets.map((wallet) => [wallet, budget])),
          { statement: TELL_REACHED, rows: wallets.map((wallet) => [wallet, origin.at]) },
          { statement: MARK_TOLD, rows: wallets.map((wallet) => [wallet]) },
          changeWrite(change),
        ],
        result: budget,
      }
    })
  }

  delete(id: string, origin: ChangeOrigin): Promise<boolean> {
    return this.#plan(async () => {
      const row = await budgetRow(this.#db, id).executeTakeFirst()
      if (!row) return { writes: [], result: false }
      const budget = toBudget(row)
      const wallets = walletsToChange(budget, origin.at)
      return {
        writes: [
          ...budgetWrites({ ...row, was: row.version, deleted: 1 }),
          ...wallets.map((wallet) => limitWrite(wallet, { limited: false })),
          { statement: DROP_UNTOLD, rows: wallets.map((wallet) => [wallet]) },
          changeWrite(budgetChange('budget.deleted', budget, origin)),
        ],
        result: true,
      }
    })
  }

  async changes(since: number): Promise<BudgetChanges> {
    let later = this.#lookUps.selectFrom('budgets').where('version', '>', BigInt(since))
    if (since === 0) later = later.where('deleted', '=', 0)
    const page = later.select('version').orderBy('version').limit(PAGE_ROWS).as('page')
    const rows = await later
      .selectAll()
      // Several that were changed at once may have the same version.
      .where('version', '<=', ({ selectFrom }) =>
        selectFrom(page).select(({ fn }) => fn.max('version').as('last')),
      )
      .orderBy('version')
      .execute()
    const budgets = rows.map((row) => ({ ...toBudget(row), deleted: row.deleted !== 0 }))
    const version = Number(rows.at(-1)?.version ?? since)
    return { version, budgets, more: rows.length >= PAGE_ROWS }
  }

  /** A budget may be changed by several at once. */
  #plan<Result>(plan: () => Promise<Planned<Result>>): Promise<Result> {
    return writePlanned(this.#db, plan, MAX_TRIES)
  }

  async noteRefusal(wallet: WalletId, at: number): Promise<void> {
    await tellRefused(this.#db, wallet, at)
  }
}

function budgetRow(db: Database, id: string) {
  return db.selectFrom('budgets').selectAll().where('id', '=', id).where('deleted', '=', 0)
}

function refused(result: BudgetCreation): Planned<BudgetCreation> {
  return { writes: [], result }
}

function toRow({
  scope,
  hard,
  soft,
  createdAt,
  ...budget
}: Budget): Omit<BudgetsTable, 'version' | 'deleted'> {
  return {
    ...scope,
    ...budget,
    hard: Number(hard),
    soft: JSON.stringify(soft),
    created_at: BigInt(createdAt),
  }
}

export function toBudget(row: Omit<BudgetsTable, 'version'>): Budget {
  const { id, account, key, user, tag, amount, period, timezone, hard, soft, created_at } = row
  return {
    ...{ id, amount, period, timezone },
    scope: { account, key, user, tag },
    hard: hard !== 0,
    soft: JSON.parse(soft) as number[],
    createdAt: Number(created_at),
  }
}
