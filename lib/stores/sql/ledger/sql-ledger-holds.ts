import { MAX_AMOUNT } from '../../../core/catalog/money.ts'
import { shareOfCharge } from '../../../core/usage/index.ts'
import { closeHold, type Hold, type HoldRefusal, judgeHold } from '../../../ledger/hold.ts'
import type { ChargeRecord } from '../../../ledger/ledger.ts'
import { accountWallet, keyWallet, type WalletId, walletsOf } from '../../../ledger/wallet.ts'
import { type Cell, cellsOf } from '../driver/columns.ts'
import { lockFreeRows } from '../driver/row-locks.ts'
import { RowStatement, type RowWrite } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import { asCounted, type UsageTally } from '../usage/usage-tally.ts'
import { MARK_TOLD, TELL_REACHED } from './budget-notices.ts'
import { openBudgetWallets } from './budget-wallets.ts'
import { CHARGE_COLUMNS } from './settlement-columns.ts'
import { OPEN_WALLETS, SPEND, WRITE_CHARGES } from './settlement-statements.ts'
import { findWallets } from './sql-ledger-rows.ts'

/*
 * Money held for video tasks. Holds are opened and closed in the transactions that write the tasks.
 */

/** Most abandoned holds freed at a time. */
const MAX_FREED = 100

/** What stands of a hold, as it is read before it is closed. */
export interface StandingHold {
  /** 0n: nothing is held. */
  readonly held: bigint
  /** The wallets of the budgets that it counts against. */
  readonly budgets: readonly WalletId[]
  /** Whether its request id has a charge or a void. */
  readonly charged: boolean
}

/**
 * Leaves out a wallet that does not have the amount: {@link refusalOf} says why. What a wallet has left may be below what 64 bits
 * hold.
 */
const HOLD = RowStatement.update(
  'wallets',
  { id: 'text', amount: 'bigint' },
  'leased = found.leased + given.amount',
  `found.id = given.id
    and (found.limited = 0 or cast(found.funds as numeric) - found.spent - found.leased >= given.amount)
    and given.amount <= ${MAX_AMOUNT} - found.leased`,
)

const WRITE_HOLDS = RowStatement.insert(
  'holds',
  { request_id: 'text', account: 'text', key: 'text', amount: 'bigint' },
  'on conflict (request_id) do nothing',
)

const WRITE_BUDGET_HOLDS = RowStatement.insert(
  'budget_holds',
  { request_id: 'text', wallet: 'text', amount: 'bigint' },
  'on conflict (request_id, wallet) do nothing',
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

/** Returns why an amount cannot be held; undefined if it can. Opens the wallets of budgets. */
export async function refusalOf(
  db: Database,
  { account, key, budgets = [], amount }: Hold,
): Promise<HoldRefusal | undefined> {
  const ids = budgets.map(({ wallet }) => wallet)
  if (ids.length > 0) await openBudgetWallets(db, ids)
  const wallets = await findWallets(db, walletsOf({ account, key, budgets: ids }))
  const ofKey = key === null ? null : wallets.get(keyWallet(key))
  const ofBudgets = budgets.map((budget) => ({ budget, wallet: wallets.get(budget.wallet) }))
  return judgeHold({ account: wallets.get(accountWallet(account)), key: ofKey, budgets: ofBudgets }, amount)
}

/** Returns the writes that hold an amount. They fail unless all wallets are there and have it. */
export function openHold({ id, account, key, budgets = [], amount }: Hold): RowWrite[] {
  if (amount === 0n) return []
  const onBudgets = budgets.map(({ wallet }) => wallet)
  return [
    { statement: HOLD, rows: walletsOf({ account, key, budgets: onBudgets }).map((of) => [of, amount]) },
    { statement: WRITE_HOLDS, rows: [[id, account, key, amount]] },
    { statement: WRITE_BUDGET_HOLDS, rows: onBudgets.map((wallet) => [id, wallet, amount]) },
  ]
}

/** Returns the writes of a charge, unless its request id has one, that also close its hold. Missing wallets are opened. */
export function chargeHold(standing: StandingHold, given: ChargeRecord, usage: UsageTally): RowWrite[] {
  const { held, budgets, charged } = standing
  if (charged || (held === 0n && given.amount === 0n && !given.usage)) return releaseHold(standing, given)
  const charge = { ...asCounted(given), budgets }
  const wallets = walletsOf(charge)
  usage.add(shareOfCharge(charge))
  return [
    { statement: OPEN_WALLETS, rows: wallets.map((id) => [id]) },
    { statement: SPEND, rows: spentRows(wallets, held, charge.amount) },
    { statement: TELL_REACHED, rows: budgets.map((wallet) => [wallet, charge.at]) },
    { statement: MARK_TOLD, rows: budgets.map((wallet) => [wallet]) },
    { statement: WRITE_CHARGES, rows: [cellsOf(CHARGE_COLUMNS, charge)] },
    ...closeRows(held, charge.requestId),
  ]
}

/** Returns the writes that release a hold: none if it is closed. */
export function releaseHold(
  { held, budgets }: StandingHold,
  { requestId, account, key }: Pick<ChargeRecord, 'requestId' | 'account' | 'key'>,
): RowWrite[] {
  if (held === 0n) return []
  const rows = spentRows(walletsOf({ account, key, budgets }), held)
  return [{ statement: SPEND, rows }, ...closeRows(held, requestId)]
}

function spentRows(wallets: readonly WalletId[], held: bigint, cost?: bigint): Cell[][] {
  const change = { limited: false, funds: 0n, spent: 0n, leased: 0n, overrun: 0n }
  closeHold(change, held, cost)
  return wallets.map((id) => [id, change.spent, -change.leased, change.overrun])
}

function closeRows(held: bigint, requestId: string): RowWrite[] {
  const rows = held === 0n ? [] : [[requestId]]
  return [
    { statement: CLOSE_HOLDS, rows },
    { statement: CLOSE_BUDGET_HOLDS, rows },
  ]
}

/**
 * Frees what budgets hold for videos that are over: a process that knows no budgets, as in the middle of an upgrade, has
 * ended those holds. It charged no budget either, which stays so. What somebody else has locked is left for another time.
 *
 * @returns whether there may be more.
 */
export async function freeAbandonedHolds(db: Database): Promise<boolean> {
  const abandoned = (trx: Database) =>
    trx
      .selectFrom('budget_holds')
      .selectAll()
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('holds').select('amount').whereRef('holds.request_id', '=', 'budget_holds.request_id'),
          ),
        ),
      )
      .limit(MAX_FREED)
  const found = await abandoned(db).execute()
  if (found.length === 0) return false
  return db.transaction().execute(async (trx) => {
    const ids = found.map(({ wallet }) => wallet)
    const wallets = trx.selectFrom('wallets').select('id').where('id', 'in', ids).orderBy('id')
    const rows = await lockFreeRows(trx, wallets).execute()
    const locked = new Set(rows.map(({ id }) => id))
    // Who opens or closes holds has locked their wallets.
    const free = await lockFreeRows(trx, abandoned(trx)).execute()
    const own = free.filter(({ wallet }) => locked.has(wallet))
    for (const { request_id, wallet, amount } of own) {
      await trx
        .deleteFrom('budget_holds')
        .where('request_id', '=', request_id)
        .where('wallet', '=', wallet)
        .execute()
      await trx
        .updateTable('wallets')
        .set(({ eb }) => ({ leased: eb('leased', '-', amount) }))
        .where('id', '=', wallet)
        .execute()
    }
    return own.length === MAX_FREED
  })
}
