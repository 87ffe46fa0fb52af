import { closeHold, type Hold, type HoldRefusal, judgeHold } from '../../../ledger/hold.ts'
import type { ChargeRecord } from '../../../ledger/ledger.ts'
import { accountWallet, keyWallet, type WalletId } from '../../../ledger/wallet.ts'
import { cellsOf } from '../driver/columns.ts'
import type { Database } from '../driver/tables.ts'
import { CHARGE_COLUMNS } from './settlement-columns.ts'
import { WRITE_CHARGES } from './settlement-statements.ts'
import { type LockedWallet, lockWallets, openWallets, saveWallets } from './sql-ledger-rows.ts'

type Payer = Pick<Hold, 'account' | 'key'>

/** Opens and closes holds for video tasks, within the transactions that write the tasks. */
export class HoldRows {
  /** Locks the payer's wallets until the transaction ends. Unknown wallets are left out. */
  lock(trx: Database, payer: Payer): Promise<Map<WalletId, LockedWallet>> {
    return lockWallets(trx, walletsOf(payer))
  }

  /** Returns why an amount cannot be held; undefined if it can. */
  judge(
    wallets: ReadonlyMap<WalletId, LockedWallet>,
    { account, key, amount }: Hold,
  ): HoldRefusal | undefined {
    const ofKey = key === null ? null : wallets.get(keyWallet(key))
    return judgeHold({ account: wallets.get(accountWallet(account)), key: ofKey }, amount)
  }

  /** @param wallets the locked wallets, on which {@link judge} has allowed the amount. */
  async open(trx: Database, wallets: ReadonlyMap<WalletId, LockedWallet>, hold: Hold): Promise<void> {
    const { id: request_id, account, key, amount } = hold
    if (amount === 0n) return
    await trx.insertInto('holds').values({ request_id, account, key, amount }).execute()
    for (const wallet of wallets.values()) wallet.leased += amount
    await saveWallets(trx, wallets.values())
  }

  /** Writes a charge, unless its request id has one, and closes its hold. Missing wallets are opened. */
  async charge(trx: Database, charge: ChargeRecord): Promise<void> {
    const wallets = await this.lock(trx, charge)
    const held = await this.#close(trx, charge.requestId)
    if (held === 0n && charge.amount === 0n) return
    const missing = walletsOf(charge).filter((id) => !wallets.has(id))
    for (const [id, opened] of await openWallets(trx, missing, false)) wallets.set(id, opened)
    const { changes } = await WRITE_CHARGES.run(trx, [cellsOf(CHARGE_COLUMNS, charge)])
    const cost = changes === 1 ? charge.amount : undefined
    for (const wallet of wallets.values()) closeHold(wallet, held, cost)
    await saveWallets(trx, wallets.values())
  }

  /** Releases a hold; does nothing if it is closed. */
  async release(trx: Database, requestId: string, payer: Payer): Promise<void> {
    const wallets = await this.lock(trx, payer)
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
    return closed?.amount ?? 0n
  }
}

function walletsOf({ account, key }: Payer): WalletId[] {
  return key === null ? [accountWallet(account)] : [accountWallet(account), keyWallet(key)]
}
