import { MAX_AMOUNT } from '../../../core/catalog/money.ts'
import { type Hold, type HoldRefusal, judgeHold } from '../../../ledger/hold.ts'
import type { ChargeRecord } from '../../../ledger/ledger.ts'
import { plan, type SettlementRows } from '../../../ledger/plan.ts'
import { accountWallet, keyWallet, type WalletId, walletsOf } from '../../../ledger/wallet.ts'
import { RowStatement, type RowWrite } from '../driver/row-statement.ts'
import type { Database } from '../driver/tables.ts'
import { UsageTally } from '../usage/usage-tally.ts'
import { openBudgetWallets } from './budget-wallets.ts'
import { OPEN_WALLETS, settlementWrites } from './settlement-writes.ts'
import { findWallets } from './sql-ledger-rows.ts'

/*
 * Money held for video tasks. Holds are opened and closed in the transactions that write the tasks.
 */

/** A hold as it is read before it is closed. */
export interface StandingHold {
  /** 0n: nothing is held. */
  readonly held: bigint
  /** The wallets of the budgets that it counts against. */
  readonly budgets: readonly WalletId[]
  /** Whether its request id has a charge or a void. */
  readonly charged: boolean
}

/**
 * Leaves out a wallet that does not have the amount: {@link refusalOf} says why. The rest of a wallet may be below the range of
 * 64 bits.
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

/** Returns the write that opens the wallet of a key that is missing, because the key has no quota and is not in this database. */
export function openKeyOf({ key }: Hold): RowWrite {
  return { statement: OPEN_WALLETS, rows: key === null ? [] : [[keyWallet(key)]] }
}

/** Returns the writes of a charge, unless its request id has one, that also close its hold. Missing wallets are opened. */
export function chargeHold(standing: StandingHold, charge: ChargeRecord, usage: UsageTally): RowWrite[] {
  if (standing.held === 0n && charge.amount === 0n && !charge.usage) return []
  const settlement = { ...charge, budgets: standing.budgets, draws: [], claim: null, entry: null }
  return settlementWrites(plan([{ kind: 'charge', ...settlement }], rowsOf(standing, charge)), usage)
}

/** Returns the writes that release a hold: none if it is closed. */
export function releaseHold(
  standing: StandingHold,
  { requestId, account, key }: Pick<ChargeRecord, 'requestId' | 'account' | 'key'>,
): RowWrite[] {
  if (standing.held === 0n) return []
  const release = { kind: 'release' as const, requestId, account, key, budgets: standing.budgets }
  return settlementWrites(plan([release], rowsOf(standing, release)), new UsageTally())
}

/** Wallets are not read before: they count as missing, and are opened where they are. */
function rowsOf(
  { held, charged }: StandingHold,
  { requestId, account, key }: Pick<ChargeRecord, 'requestId' | 'account' | 'key'>,
): SettlementRows {
  const charge = { account, key, amount: 0n, voided: false, usage: null }
  return {
    wallets: new Map(),
    leases: new Map(),
    charges: new Map(charged ? [[requestId, charge]] : []),
    holds: new Map([[requestId, held]]),
    owns: () => true,
  }
}
