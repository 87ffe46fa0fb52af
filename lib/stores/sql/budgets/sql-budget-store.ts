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
import { recordChange } from '../accounts/sql-change-log.ts'
import { aDatabase, checkDatabase } from '../driver/check-database.ts'
import { lockTable } from '../driver/row-locks.ts'
import type { Database } from '../driver/tables.ts'
import { dropUntold, noteWrites, tellReached, tellRefused } from '../ledger/budget-notices.ts'
import type { BudgetsTable } from '../ledger/ledger-tables.ts'
import { setLimit } from '../ledger/sql-ledger-books.ts'

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
    const { account, key, user, tag } = budget.scope
    return this.#db.transaction().execute(async (trx) => {
      const version = await nextVersion(trx)
      const owner = await trx.selectFrom('accounts').select('id').where('id', '=', account).executeTakeFirst()
      if (!owner) return 'no_account'
      if (key !== null) {
        const found = await trx.selectFrom('keys').select('account').where('id', '=', key).executeTakeFirst()
        if (found?.account !== account) return 'no_key'
      }
      const { count } = await trx
        .selectFrom('budgets')
        .select(({ fn }) => fn.countAll<bigint>().as('count'))
        .where('account', '=', account)
        .where('deleted', '=', 0)
        .executeTakeFirstOrThrow()
      if (Number(count) >= MAX_BUDGETS) return 'too_many'
      const { id, period, timezone, createdAt } = budget
      await trx
        .insertInto('budgets')
        .values({
          ...{ id, account, key, user, tag, period, timezone },
          ...toColumns(budget),
          created_at: BigInt(createdAt),
          version,
          deleted: 0,
        })
        .execute()
      await recordChange(trx, budgetChange('budget.created', budget, origin))
      return 'created'
    })
  }

  change(
    id: string,
    revise: (terms: BudgetTerms) => BudgetTerms,
    origin: ChangeOrigin,
  ): Promise<Budget | undefined> {
    return this.#db.transaction().execute(async (trx) => {
      const version = await nextVersion(trx)
      const row = await budgetRow(trx, id).executeTakeFirst()
      if (!row) return undefined
      const before = toBudget(row)
      const budget = { ...before, ...revise(before) }
      const change = budgetTermsChange(budget, before, origin)
      if (!change) return before
      await trx
        .updateTable('budgets')
        .set({ ...toColumns(budget), version })
        .where('id', '=', id)
        .execute()
      const wallets = walletsToChange(budget, origin.at)
      for (const wallet of wallets) {
        await setLimit(trx, wallet, { limited: budget.hard, quota: budget.amount })
        for (const { statement, rows } of noteWrites(wallet, budget)) await statement.run(trx, rows)
      }
      await tellReached(trx, wallets, origin.at)
      await recordChange(trx, change)
      return budget
    })
  }

  delete(id: string, origin: ChangeOrigin): Promise<boolean> {
    return this.#db.transaction().execute(async (trx) => {
      const version = await nextVersion(trx)
      const row = await budgetRow(trx, id).executeTakeFirst()
      if (!row) return false
      const budget = toBudget(row)
      await trx.updateTable('budgets').set({ version, deleted: 1 }).where('id', '=', id).execute()
      for (const wallet of walletsToChange(budget, origin.at)) {
        await setLimit(trx, wallet, { limited: false })
        await dropUntold(trx, wallet)
      }
      await recordChange(trx, budgetChange('budget.deleted', budget, origin))
      return true
    })
  }

  async changes(since: number): Promise<BudgetChanges> {
    let query = this.#lookUps.selectFrom('budgets').selectAll().where('version', '>', BigInt(since))
    if (since === 0) query = query.where('deleted', '=', 0)
    const rows = await query.orderBy('version').execute()
    const budgets = rows.map((row) => ({ ...toBudget(row), deleted: row.deleted !== 0 }))
    return { version: Number(rows.at(-1)?.version ?? since), budgets }
  }

  async noteRefusal(wallet: WalletId, at: number): Promise<void> {
    await tellRefused(this.#db, wallet, at)
  }
}

/** Returns the number of the next change. Changes are made one at a time, so that none is missed behind a later number. */
export async function nextVersion(trx: Database): Promise<bigint> {
  await lockTable(trx, 'budgets')
  const { last } = await trx
    .selectFrom('budgets')
    .select(({ fn }) => fn.max<bigint | null>('version').as('last'))
    .executeTakeFirstOrThrow()
  return (last ?? 0n) + 1n
}

function budgetRow(db: Database, id: string) {
  return db.selectFrom('budgets').selectAll().where('id', '=', id).where('deleted', '=', 0)
}

function toColumns({ amount, hard, soft }: BudgetTerms) {
  return { amount, hard: Number(hard), soft: JSON.stringify(soft) }
}

export function toBudget(row: BudgetsTable): Budget {
  const { id, account, key, user, tag, amount, period, timezone, hard, soft, created_at } = row
  return {
    ...{ id, amount, period, timezone },
    scope: { account, key, user, tag },
    hard: hard !== 0,
    soft: JSON.parse(soft) as number[],
    createdAt: Number(created_at),
  }
}
