import { MAX_AMOUNT } from '../../../core/catalog/money.ts'
import type { PlannedVoid, SettlementPlan } from '../../../ledger/plan.ts'
import type { WalletId } from '../../../ledger/wallet.ts'
import { labelRows, WRITE_LABELS } from '../calls/call-labels.ts'
import { type Cell, cellsOf, typesOf } from '../driver/columns.ts'
import { RowStatement, type RowWrite } from '../driver/row-statement.ts'
import { asCounted, type UsageTally } from '../usage/usage-tally.ts'
import { MARK_SENT, TELL_REACHED } from './budget-notices.ts'
import { CALL_COLUMNS, CHARGE_COLUMNS } from './charge-rows.ts'

/*
 * The statements of a settlement, in the order in which all who write several of these rows lock them: wallets, claims,
 * charges and voids, leases, calls, usage.
 */

/** Opens wallets that are missing, without a limit. */
export const OPEN_WALLETS = RowStatement.insert('wallets', { id: 'text' }, 'on conflict (id) do nothing', {
  constants: { limited: 0, funds: 0, spent: 0, leased: 0, overrun: 0 },
  loose: true,
})

/** Leaves out a wallet whose figure would exceed 64 bits: SQLite would convert it to a float. */
const SPEND = RowStatement.update(
  'wallets',
  { id: 'text', spent: 'bigint', leased: 'bigint', overrun: 'bigint' },
  `spent = found.spent + given.spent, leased = found.leased + given.leased, overrun = found.overrun + given.overrun`,
  `found.id = given.id and given.spent <= ${MAX_AMOUNT} - found.spent
    and given.overrun <= ${MAX_AMOUNT} - found.overrun`,
)

export const COMPLETE_CLAIMS = RowStatement.update(
  'idempotency',
  { id: 'text', owner: 'text', keep_until: 'bigint' },
  `state = 'completed', expires_at = given.keep_until`,
  'found.id = given.id and found.owner = given.owner',
)

export const FREE_CLAIMS = RowStatement.delete(
  'idempotency',
  { id: 'text', owner: 'text' },
  'found.id = given.id and found.owner = given.owner',
)

const WRITE_CHARGES = RowStatement.insert(
  'charges',
  typesOf(CHARGE_COLUMNS),
  'on conflict (request_id) do nothing',
  { unless: 'select 1 from voids where voids.request_id = given.request_id' },
)

const VOID_COLUMNS = {
  request_id: 'text',
  account: 'text',
  key: 'text',
  amount: 'bigint',
  at: 'bigint',
} as const

const WRITE_VOIDS = RowStatement.insert('voids', VOID_COLUMNS, 'on conflict (request_id) do nothing')

/** For voids that come before their charges. */
const WRITE_FIRST_VOIDS = RowStatement.insert('voids', VOID_COLUMNS, 'on conflict (request_id) do nothing', {
  unless: 'select 1 from charges where charges.request_id = given.request_id',
})

const DRAW = RowStatement.update(
  'leases',
  { id: 'text', wallet: 'text', drawn: 'bigint' },
  'held = found.held - given.drawn',
  'found.id = given.id and found.wallet = given.wallet and found.held >= given.drawn',
)

const CLOSE_HOLDS = RowStatement.delete(
  'holds',
  { request_id: 'text' },
  'found.request_id = given.request_id',
  { loose: false, order: 'request_id' },
)

const CLOSE_BUDGET_HOLDS = RowStatement.delete(
  'budget_holds',
  { request_id: 'text' },
  'found.request_id = given.request_id',
  { order: 'wallet' },
)

const REPLACE = `on conflict (id) do update set ${Object.keys(CALL_COLUMNS).map((name) => `${name} = excluded.${name}`)}`

/** An entry replaces an earlier one. */
export const WRITE_CALLS = RowStatement.insert('calls', typesOf(CALL_COLUMNS), REPLACE)

/** For the calls of charges that were stored before. The entry of a void that came since is not replaced. */
const WRITE_CALLS_UNLESS_VOIDED = RowStatement.insert('calls', typesOf(CALL_COLUMNS), REPLACE, {
  unless: 'select 1 from voids where voids.request_id = given.id',
})

/**
 * Returns the writes of a plan. They fail if a row that the plan relies on has changed.
 *
 * @param usage takes the usage, whose rows are written last.
 * @param logged whether the log entries are written, too.
 */
export function settlementWrites(plan: SettlementPlan, usage: UsageTally, logged = true): RowWrite[] {
  const [charges, calls, repeatedCalls, labels]: [Cell[][], Cell[][], Cell[][], Cell[][]] = [[], [], [], []]
  const budgets = new Map<WalletId, number>()
  for (const { charge, isUndone } of plan.charges) {
    const counted = asCounted(charge)
    if (!isUndone) usage.addCharge(counted)
    charges.push(cellsOf(CHARGE_COLUMNS, counted))
    for (const wallet of charge.budgets ?? []) budgets.set(wallet, charge.at)
  }
  for (const share of plan.usage.undone) usage.takeAway(share)
  for (const share of plan.usage.uncharged) usage.add(share)
  for (const { entry, unlessVoided } of logged ? plan.entries : []) {
    const rows = unlessVoided ? repeatedCalls : calls
    rows.push(cellsOf(CALL_COLUMNS, entry))
    labels.push(...labelRows(entry))
  }
  const holds = plan.closedHolds.map((id) => [id])
  return [
    { statement: OPEN_WALLETS, rows: plan.openedWallets.map((id) => [id]) },
    {
      statement: SPEND,
      rows: plan.wallets.map(({ id, spent, leased, overrun }) => [id, spent, leased, overrun]),
    },
    { statement: TELL_REACHED, rows: [...budgets] },
    { statement: MARK_SENT, rows: Array.from(budgets.keys(), (id) => [id]) },
    {
      statement: COMPLETE_CLAIMS,
      rows: plan.completedClaims.map(({ id, owner, keepUntil }) => [id, owner, keepUntil]),
    },
    { statement: FREE_CLAIMS, rows: plan.freedClaims.map(({ id, owner }) => [id, owner]) },
    { statement: WRITE_CHARGES, rows: charges },
    { statement: WRITE_VOIDS, rows: plan.voids.filter(({ isFirst }) => !isFirst).map(voidRow) },
    { statement: WRITE_FIRST_VOIDS, rows: plan.voids.filter(({ isFirst }) => isFirst).map(voidRow) },
    { statement: CLOSE_HOLDS, rows: holds },
    { statement: CLOSE_BUDGET_HOLDS, rows: holds },
    { statement: DRAW, rows: plan.draws.map(({ lease, wallet, amount }) => [lease, wallet, amount]) },
    { statement: WRITE_CALLS, rows: calls },
    { statement: WRITE_CALLS_UNLESS_VOIDED, rows: repeatedCalls },
    { statement: WRITE_LABELS, rows: labels },
  ]
}

function voidRow({ requestId, account, key, amount, at }: PlannedVoid): Cell[] {
  return [requestId, account, key, amount, at]
}
