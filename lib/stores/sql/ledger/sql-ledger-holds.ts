import { closeHold, type Hold, type HoldRefusal, judgeHold } from '../../../ledger/hold.ts'
import { accountWallet, keyWallet, type WalletId } from '../../../ledger/wallet.ts'
import type { Database } from '../driver/tables.ts'
import { ChargeRows, type NewCharge } from './sql-ledger-charges.ts'
import { type LockedWallet, WalletRows } from './sql-ledger-rows.ts'

type Payer = Pick<Hold, 'account' | 'key'>

/** Money held for video tasks, opened and closed within the transactions that write the tasks. */
export class HoldRows {
  readonly #wallets: WalletRows
  readonly #charges: ChargeRows

  constructor(db: Database) {
    this.#wallets = new WalletRows(db)
    this.#charges = new ChargeRows(db)
  }

  /** The wallets that pay, those that are there, locked until the transaction ends. */
  lock(trx: Database, payer: Payer): Promise<Map<WalletId, LockedWallet>> {
    return this.#wallets.lock(trx, walletsOf(payer))
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
    await this.#wallets.save(trx, wallets.values())
  }

  /** Writes a charge, if its request id has none, and closes its hold. Wallets that are not there are opened. */
  async charge(trx: Database, charge: NewCharge): Promise<void> {
    const wallets = await this.lock(trx, charge)
    const held = await this.#close(trx, charge.requestId)
    if (held === 0n && charge.amount === 0n) return
    const missing = walletsOf(charge).filter((id) => !wallets.has(id))
    for (const [id, opened] of await this.#wallets.open(trx, missing, false)) wallets.set(id, opened)
    const written = await this.#charges.insert(trx, [charge])
    const cost = written.has(charge.requestId) ? charge.amount : undefined
    for (const wallet of wallets.values()) closeHold(wallet, held, cost)
    await this.#wallets.save(trx, wallets.values())
  }

  /** Gives back what is held; nothing where it is closed. */
  async release(trx: Database, requestId: string, payer: Payer): Promise<void> {
    const wallets = await this.lock(trx, payer)
    const held = await this.#close(trx, requestId)
    if (held === 0n) return
    for (const wallet of wallets.values()) closeHold(wallet, held)
    await this.#wallets.save(trx, wallets.values())
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
