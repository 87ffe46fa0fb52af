import type { ChangeOrigin } from '../../../core/change-log/index.ts'
import { checkOptions } from '../../../core/options/index.ts'
import type { Budget, BudgetTerms } from '../../../ledger/budgets/budget.ts'
import type { BudgetChanges } from '../../../ledger/budgets/budgets.ts'
import type { WalletId } from '../../../ledger/index.ts'
import {
  type BudgetCreation,
  type BudgetQuery,
  type BudgetStore,
  budgetChange,
  budgetTermsChange,
  MAX_BUDGETS,
  walletsToChange,
} from '../../../management/budgets/budget-store.ts'
import { aDatabase, checkDatabase } from '../driver/database.ts'
import { lockNamedRow } from '../driver/row-locks.ts'
import { RowStatement, type RowWrite } from '../driver/row-statement.ts'
import type { BudgetsTable, Database } from '../driver/tables.ts'
import { type Planned, writePlanned } from '../driver/write-together.ts'
import { DROP_UNSENT, MARK_SENT, noteWrites, TELL_REACHED, tellRefused } from '../ledger/budget-notices.ts'
import { limitWrite } from '../ledger/sql-ledger-admin.ts'
import { changeWrite } from './sql-change-log.ts'

/*
 * Changes of budgets. Each goes with the wallets that it concerns in one round trip: calls wait for those.
 */

/** Opens budgets, without a number; leaves out one that exceeds the limit of the account, or that another process has opened. */
const OPEN = RowStatement.insert(
  'budgets',
  {
    ...{ id: 'text', account: 'text', key: 'text', tag: 'text', amount: 'bigint', period: 'text' },
    ...{ timezone: 'text', hard: 'bigint', soft: 'text', created_at: 'bigint' },
  },
  'on conflict (id) do nothing',
  {
    constants: { version: 0, deleted: 1 },
    unless: `select 1 from budgets where budgets.account = given.account and budgets.deleted = 0
      limit 1 offset ${MAX_BUDGETS - 1}`,
    loose: true,
  },
)

/** Fails if the budget was changed meanwhile. The number is the next one. */
const CHANGE = RowStatement.update(
  'budgets',
  {
    ...{ id: 'text', was: 'bigint', whom: 'text', amount: 'bigint', hard: 'bigint', soft: 'text' },
    deleted: 'bigint',
  },
  `version = (select max(version) from budgets) + 1, "user" = given.whom, amount = given.amount, hard = given.hard,
    soft = given.soft, deleted = given.deleted`,
  'found.id = given.id and found.version = given.was',
)

/** A budget as it is to be. */
interface ChangedBudget extends Omit<BudgetsTable, 'version'> {
  /** Its number before the change; undefined for a new budget. */
  readonly was: bigint | undefined
}

/** Returns the writes that change budgets. They fail if one has changed meanwhile, or may no longer be opened. */
function budgetWrites(...budgets: readonly ChangedBudget[]): RowWrite[] {
  const opened = budgets.filter(({ was }) => was === undefined)
  return [
    // So that none is missed behind a later number.
    lockNamedRow('budgets'),
    {
      statement: OPEN,
      rows: opened.map(({ id, account, key, tag, amount, period, timezone, hard, soft, created_at }) => [
        ...[id, account, key, tag, amount, period],
        ...[timezone, hard, soft, created_at],
      ]),
    },
    {
      statement: CHANGE,
      rows: budgets.map(({ id, was = 0n, user, amount, hard, soft, deleted }) => [
        ...[id, was, user, amount, hard, soft],
        deleted,
      ]),
    },
  ]
}

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
          { statement: MARK_SENT, rows: wallets.map((wallet) => [wallet]) },
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
          { statement: DROP_UNSENT, rows: wallets.map((wallet) => [wallet]) },
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

function toBudget(row: Omit<BudgetsTable, 'version'>): Budget {
  const { id, account, key, user, tag, amount, period, timezone, hard, soft, created_at } = row
  return {
    ...{ id, amount, period, timezone },
    scope: { account, key, user, tag },
    hard: hard !== 0,
    soft: JSON.parse(soft) as number[],
    createdAt: Number(created_at),
  }
}
