import { MAX_BUDGETS } from '../../../endpoints/admin/budgets/budget-store.ts'
import { RowStatement, type RowWrite } from '../driver/row-statement.ts'
import type { BudgetsTable } from '../ledger/ledger-tables.ts'

/*
 * Changes of budgets. Each goes with the wallets that it concerns in one round trip: calls wait for those.
 */

/** Changes are made one at a time, so that none is missed behind a later number. SQLite makes all so. */
export const IN_TURN: RowWrite = {
  statement: RowStatement.steps(
    { name: 'text' },
    {},
    'select pg_advisory_xact_lock(hashtext(given.name)) from given',
    'select ?1',
  ),
  rows: [['express-model-gateway budgets']],
}

/** Opens budgets, without a number; leaves out one that the account may not have too, or that somebody else has opened. */
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

/** Fails if somebody else has changed the budget. The number is the next one. */
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
export interface ChangedBudget extends Omit<BudgetsTable, 'version'> {
  /** Its number before the change; undefined for a new budget. */
  readonly was: bigint | undefined
}

/** Returns the writes that change budgets. They fail if one has changed meanwhile, or may not be opened any more. */
export function budgetWrites(...budgets: readonly ChangedBudget[]): RowWrite[] {
  const opened = budgets.filter(({ was }) => was === undefined)
  return [
    IN_TURN,
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
