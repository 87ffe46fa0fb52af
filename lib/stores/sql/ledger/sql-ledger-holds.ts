import { closeHold, type Hold, type HoldRefusal, judgeHold } from '../../../ledger/hold.ts'
import type { ChargeRecord } from '../../../ledger/ledger.ts'
import { accountWallet, keyWallet, type WalletId } from '../../../ledger/wallet.ts'
import { cellsOf } from '../driver/columns.ts'
import type { Database } from '../driver/tables.ts'
import { CHARGE_COLUMNS } from './settlement-columns.ts'
import { WRITE_CHARGES } from './settlement-statements.ts'
import { type LockedWallet, lockWallets, openWallets, saveWallets } from './sql-ledger-rows.ts'

type Payer = Pick<Hold, 'account' | 'key'>

/** Money held for video tasks, opened and closed within the transactions that write the tasks. */
export class HoldRows {
  /** The wallets that pay, those that are there, locked until the transaction ends. */
  lock(trx: Database, payer: Payer): Promise<Map<WalletId, LockedWallet>> {
    return lockWallets(trx, walletsOf(payer))
  }

  /** Why an amount cannot be held; undefined where it can. */
  judge(
    wallets: ReadonlyMap<WalletId, LockedWallet>,
    { account, key, amount }: Hold,
  ): HoldRefusal | undefined {
    const ofKey = key === null ? null : wallets.get(keyWallet(key))
    return judgeHold({ account: wallets.get(accountWallet(account)), key: ofKey }, amount)
  }

  /** @param wallets locked, and judged. */
  async open(trx: Database, wallets: ReadonlyMap<WalletId, LockedWallet>, hold: Hold): Promise<void> {
    const { id: request_id, account, key, amount } = hold
    if (amount === 0n) return
    await trx.insertInto('holds').values({ request_id, account, key, amount }).execute()
    for (const wallet of wallets.values()) wallet.leased += amount
    await saveWallets(trx, wallets.values())
  }

  /** Writes a charge, if its request id has none, and closes its hold. Wallets that are not there are opened. */
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

  /** Gives back what is held; nothing where it is closed. */
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
