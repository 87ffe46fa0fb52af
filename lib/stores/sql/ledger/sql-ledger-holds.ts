import { shareOfCharge } from '../../../core/usage/index.ts'
import { closeHold, type Hold, type HoldRefusal, judgeHold } from '../../../ledger/hold.ts'
import type { ChargeRecord } from '../../../ledger/ledger.ts'
import { accountWallet, keyWallet, type WalletId } from '../../../ledger/wallet.ts'
import { cellsOf } from '../driver/columns.ts'
import { lockFreeRows } from '../driver/row-locks.ts'
import type { Database } from '../driver/tables.ts'
import { addUsage, asCounted, UsageTally } from '../usage/usage-tally.ts'
import { tellReached } from './budget-notices.ts'
import { openBudgetWallets } from './budget-wallets.ts'
import { CHARGE_COLUMNS } from './settlement-columns.ts'
import { WRITE_CHARGES } from './settlement-statements.ts'
import { type LockedWallet, lockWallets, openWallets, saveWallets } from './sql-ledger-rows.ts'

/** Most abandoned holds freed at a time. */
const MAX_FREED = 100

type Payer = Pick<Hold, 'account' | 'key'> & { readonly budgets?: readonly WalletId[] | undefined }

/** Opens and closes holds for video tasks, within the transactions that write the tasks. */
export class HoldRows {
  /** Locks the payer's wallets until the transaction ends. Unknown wallets are left out, but for those of budgets. */
  async lock(trx: Database, { account, key, budgets = [] }: Hold): Promise<Map<WalletId, LockedWallet>> {
    const wallets = budgets.map(({ wallet }) => wallet)
    if (wallets.length > 0) await openBudgetWallets(trx, wallets)
    return lockWallets(trx, walletsOf({ account, key, budgets: wallets }))
  }

  /** Returns why an amount cannot be held; undefined if it can. */
  judge(
    wallets: ReadonlyMap<WalletId, LockedWallet>,
    { account, key, budgets = [], amount }: Hold,
  ): HoldRefusal | undefined {
    const ofKey = key === null ? null : wallets.get(keyWallet(key))
    const ofBudgets = budgets.map((budget) => ({ budget, wallet: wallets.get(budget.wallet) }))
    return judgeHold({ account: wallets.get(accountWallet(account)), key: ofKey, budgets: ofBudgets }, amount)
  }

  /** @param wallets the locked wallets, on which {@link judge} has allowed the amount. */
  async open(trx: Database, wallets: ReadonlyMap<WalletId, LockedWallet>, hold: Hold): Promise<void> {
    const { id: request_id, account, key, budgets = [], amount } = hold
    if (amount === 0n) return
    await trx.insertInto('holds').values({ request_id, account, key, amount }).execute()
    const onBudgets = budgets.map(({ wallet }) => ({ request_id, wallet, amount }))
    if (onBudgets.length > 0) await trx.insertInto('budget_holds').values(onBudgets).execute()
    for (const wallet of wallets.values()) wallet.leased += amount
    await saveWallets(trx, wallets.values())
  }

  /** Writes a charge, unless its request id has one, and closes its hold. Missing wallets are opened. */
  async charge(trx: Database, given: ChargeRecord): Promise<void> {
    const charge = asCounted(given)
    const budgets = await budgetsOf(trx, charge.requestId)
    const payer = { ...charge, budgets }
    const wallets = await lockWallets(trx, walletsOf(payer))
    const held = await this.#close(trx, charge.requestId)
    if (held === 0n && charge.amount === 0n) return
    const missing = walletsOf(payer).filter((id) => !wallets.has(id))
    for (const [id, opened] of await openWallets(trx, missing, false)) wallets.set(id, opened)
    const { changes } = await WRITE_CHARGES.run(trx, [cellsOf(CHARGE_COLUMNS, payer)])
    const cost = changes === 1 ? charge.amount : undefined
    for (const wallet of wallets.values()) closeHold(wallet, held, cost)
    await saveWallets(trx, wallets.values())
    if (cost === undefined) return
    await tellReached(trx, budgets, charge.at)
    await addUsage(trx, new UsageTally([shareOfCharge(charge)]))
  }

  /** Releases a hold; does nothing if it is closed. */
  async release(trx: Database, requestId: string, { account, key }: Payer): Promise<void> {
    const budgets = await budgetsOf(trx, requestId)
    const wallets = await lockWallets(trx, walletsOf({ account, key, budgets }))
    const held = await this.#close(trx, requestId)
    if (held === 0n) return
    for (const wallet of wallets.values()) closeHold(wallet, held)
    await saveWallets(trx, wallets.values())
  }

  async #close(trx: Database, requestId: string): Promise<bigint> {
    const closed = await trx
      .deleteFrom('holds')
      .where('request_id', '=', requestId)
      .returning('amount')
      .executeTakeFirst()
    if (closed) await trx.deleteFrom('budget_holds').where('request_id', '=', requestId).execute()
    return closed?.amount ?? 0n
  }
}

/**
 * Frees what budgets hold for videos that are over: a process that knows no budgets, as in the middle of an upgrade, has
 * ended those holds. It charged no budget either, which stays so. What somebody else has locked is left for another time.
 */
export async function freeAbandonedHolds(db: Database): Promise<void> {
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
  if (found.length === 0) return
  await db.transaction().execute(async (trx) => {
    const ids = found.map(({ wallet }) => wallet)
    const wallets = trx.selectFrom('wallets').select('id').where('id', 'in', ids).orderBy('id')
    const rows = await lockFreeRows(trx, wallets).execute()
    const locked = new Set(rows.map(({ id }) => id))
    // Who opens or closes holds has locked their wallets.
    const free = await lockFreeRows(trx, abandoned(trx)).execute()
    for (const { request_id, wallet, amount } of free) {
      if (!locked.has(wallet)) continue
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
  })
}

/** Returns the wallets of the budgets that a hold counts against. */
async function budgetsOf(trx: Database, requestId: string): Promise<readonly WalletId[]> {
  const rows = await trx
    .selectFrom('budget_holds')
    .select('wallet')
    .where('request_id', '=', requestId)
    .orderBy('wallet')
    .execute()
  return rows.map(({ wallet }) => wallet)
}

function walletsOf({ account, key, budgets = [] }: Payer): WalletId[] {
  const wallets = [accountWallet(account), ...budgets]
  if (key !== null) wallets.push(keyWallet(key))
  return wallets
}
