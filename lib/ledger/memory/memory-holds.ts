import type { AuditedHold, AuditedLease } from '../audit.ts'
import { closeHold, type Hold, type HoldRefusal, type HoldWallets, judgeHold } from '../hold.ts'
import type { ChargeRecord } from '../ledger.ts'
import { accountWallet, keyWallet, type WalletId } from '../wallet.ts'
import type { MemoryCharges, MemoryWallet, MemoryWallets } from './memory-records.ts'

type Payer = Pick<Hold, 'account' | 'key' | 'budgets'>

/** The wallets of budgets that holds use. */
interface HeldBudgets {
  /** Opens the wallet of a budget, if it is missing. */
  open(wallet: WalletId): void
  /** Is told of the charge of a hold. */
  charged(wallet: WalletId, cost: bigint): void
}

/** Holds in this process's memory, for work that lasts longer than a call, such as a video task. */
export class MemoryHolds {
  readonly #wallets: MemoryWallets
  readonly #charges: MemoryCharges
  readonly #opensUnknown: boolean
  readonly #budgets: HeldBudgets
  readonly #open = new Map<string, Hold>()

  /**
   * @param opensUnknown whether unknown accounts and keys are served, without limits.
   */
  constructor(wallets: MemoryWallets, charges: MemoryCharges, opensUnknown: boolean, budgets: HeldBudgets) {
    this.#budgets = budgets
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
    for (const { wallet } of hold.budgets ?? []) this.#budgets.open(wallet)
    const refusal = judgeHold(this.#found(hold), hold.amount)
    if (refusal || hold.amount === 0n) return refusal
    for (const wallet of this.#walletsOf(hold)) wallet.leased += hold.amount
    this.#open.set(hold.id, hold)
    return undefined
  }

  /** Charges the cost and closes the hold. A request id that has been charged is not charged again. */
  charge({
    id,
    account,
    key,
    amount,
    at = Date.now(),
    usage,
    cost,
  }: Hold & Partial<Pick<ChargeRecord, 'at' | 'usage' | 'cost'>>): void {
    const open = this.#open.get(id)
    this.#open.delete(id)
    const held = open?.amount ?? 0n
    if (held === 0n && amount === 0n && !usage) return
    const known = this.#charges.find(id) !== undefined
    const paying = this.#walletsOf({ account, key, budgets: open?.budgets })
    for (const wallet of paying) closeHold(wallet, held, known ? undefined : amount)
    const budgets = open?.budgets?.map(({ wallet }) => wallet) ?? []
    if (known) return
    this.#charges.add({
      requestId: id,
      account,
      key,
      amount,
      budgets,
      cost: cost ?? null,
      at,
      usage: usage ?? null,
    })
    for (const wallet of budgets) this.#budgets.charged(wallet, amount)
  }

  /** Releases a hold; does nothing if it is closed. */
  release(id: string): void {
    const hold = this.#open.get(id)
    if (!hold) return
    this.#open.delete(id)
    for (const wallet of this.#walletsOf(hold)) closeHold(wallet, hold.amount)
  }

  all(): AuditedHold[] {
    return [...this.#open.values()].map(({ id, account, key, amount }) => {
      return { id, account, key, amount, charged: this.#charges.find(id) !== undefined }
    })
  }

  /** Returns the parts of holds on budgets. */
  onBudgets(): AuditedLease[] {
    return [...this.#open.values()].flatMap(({ id, amount: held, budgets = [] }) =>
      budgets.map(({ wallet }) => ({ id, wallet, held, ended: null })),
    )
  }

  #found({ account, key, budgets = [] }: Payer): HoldWallets {
    return {
      account: this.#wallets.get(accountWallet(account)),
      key: key === null ? null : this.#wallets.get(keyWallet(key)),
      budgets: budgets.map((budget) => ({ budget, wallet: this.#wallets.get(budget.wallet) })),
    }
  }

  /** Returns the wallets. Missing ones are opened without limits. */
  #walletsOf({ account, key, budgets = [] }: Payer): MemoryWallet[] {
    const paying = budgets.map(({ wallet }) => this.#wallets.budget(wallet))
    paying.push(this.#wallets.account(account))
    if (key !== null) paying.push(this.#wallets.key(key))
    return paying
  }
}
