import type { AuditedHold } from '../audit.ts'
import { closeHold, type Hold, type HoldRefusal, type HoldWallets, judgeHold } from '../hold.ts'
import { accountWallet, keyWallet } from '../wallet.ts'
import type { MemoryCharges, MemoryWallet, MemoryWallets } from './memory-records.ts'

/** Holds in this process's memory, for work that lasts longer than a call, such as a video task. */
export class MemoryHolds {
  readonly #wallets: MemoryWallets
  readonly #charges: MemoryCharges
  readonly #opensUnknown: boolean
  readonly #open = new Map<string, Hold>()

  /** @param opensUnknown whether unknown accounts and keys are served, without limits. */
  constructor(wallets: MemoryWallets, charges: MemoryCharges, opensUnknown: boolean) {
    this.#wallets = wallets
    this.#charges = charges
    this.#opensUnknown = opensUnknown
  }

  /**
   * Holds an amount on both wallets or on none. A hold that is open already stays as it is.
   *
   * @returns why it cannot be held; undefined if it is held.
   */
  open(hold: Hold): HoldRefusal | undefined {
    if (this.#open.has(hold.id)) return undefined
    if (this.#opensUnknown) this.#walletsOf(hold)
    const refusal = judgeHold(this.#found(hold), hold.amount)
    if (refusal || hold.amount === 0n) return refusal
    for (const wallet of this.#walletsOf(hold)) wallet.leased += hold.amount
    this.#open.set(hold.id, hold)
    return undefined
  }

  /** Charges the cost and closes the hold. A request id that has been charged is not charged again. */
  charge({ id, account, key, amount }: Hold): void {
    const held = this.#take(id)
    if (held === 0n && amount === 0n) return
    const known = this.#charges.find(id) !== undefined
    const paying = this.#walletsOf({ account, key })
    for (const wallet of paying) closeHold(wallet, held, known ? undefined : amount)
    if (!known) this.#charges.add({ requestId: id, account, key, amount })
  }

  /** Releases a hold; does nothing if it is closed. */
  release(id: string): void {
    const hold = this.#open.get(id)
    if (!hold) return
    this.#open.delete(id)
    for (const wallet of this.#walletsOf(hold)) closeHold(wallet, hold.amount)
  }

  all(): AuditedHold[] {
    return [...this.#open.values()].map((hold) => ({
      ...hold,
      charged: this.#charges.find(hold.id) !== undefined,
    }))
  }

  #take(id: string): bigint {
    const amount = this.#open.get(id)?.amount ?? 0n
    this.#open.delete(id)
    return amount
  }

  #found({ account, key }: Pick<Hold, 'account' | 'key'>): HoldWallets {
    return {
      account: this.#wallets.get(accountWallet(account)),
      key: key === null ? null : this.#wallets.get(keyWallet(key)),
    }
  }

  /** Returns the wallets. Missing ones are opened without limits. */
  #walletsOf({ account, key }: Pick<Hold, 'account' | 'key'>): MemoryWallet[] {
    const paying = this.#wallets.account(account)
    return key === null ? [paying] : [paying, this.#wallets.key(key)]
  }
}
