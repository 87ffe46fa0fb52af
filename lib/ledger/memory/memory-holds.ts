import type { AuditedHold, AuditedLease } from '../audit.ts'
import { type Hold, type HoldRefusal, type HoldWallets, judgeHold } from '../hold.ts'
import type { ChargeRecord, Settlement } from '../ledger.ts'
import type { HoldRelease } from '../plan.ts'
import { accountWallet, keyWallet, walletsOf } from '../wallet.ts'
import type { MemoryWallet, MemoryWallets } from './memory-records.ts'

/** The parts of a ledger that its holds use. */
interface MemoryHoldsDeps {
  /** Whether unknown accounts are served, without limits. */
  readonly opensUnknown: boolean
  isCharged(requestId: string): boolean
  /** @param held the amount of the hold that ends with it. */
  settle(settlement: Settlement | HoldRelease, held: bigint): void
}

/** Holds in this process's memory, for work that lasts longer than a call, such as a video task. */
export class MemoryHolds {
  readonly #wallets: MemoryWallets
  readonly #deps: MemoryHoldsDeps
  readonly #open = new Map<string, Hold>()

  constructor(wallets: MemoryWallets, deps: MemoryHoldsDeps) {
    this.#wallets = wallets
    this.#deps = deps
  }

  /**
   * Holds an amount on both wallets or on none. A hold that is open already stays as it is.
   *
   * @returns why it cannot be held; undefined if it is held.
   */
  open(hold: Hold): HoldRefusal | undefined {
    if (this.#open.has(hold.id)) return undefined
    if (this.#deps.opensUnknown) this.#walletsOf(hold)
    for (const { wallet } of hold.budgets ?? []) this.#wallets.open(wallet)
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
    usage = null,
    cost = null,
  }: Hold & Partial<Pick<ChargeRecord, 'at' | 'usage' | 'cost'>>): void {
    const hold = this.#open.get(id)
    this.#open.delete(id)
    const held = hold?.amount ?? 0n
    if (held === 0n && amount === 0n && !usage) return
    const budgets = hold?.budgets?.map(({ wallet }) => wallet) ?? []
    const charge = { requestId: id, account, key, amount, at, usage, cost, budgets }
    this.#deps.settle({ kind: 'charge', ...charge, basis: null, draws: [], claim: null, entry: null }, held)
  }

  /** Releases a hold; does nothing if it is closed. */
  release(id: string): void {
    const hold = this.#open.get(id)
    if (!hold) return
    this.#open.delete(id)
    const budgets = hold.budgets?.map(({ wallet }) => wallet) ?? []
    this.#deps.settle({ ...hold, kind: 'release', requestId: id, budgets }, hold.amount)
  }

  all(): AuditedHold[] {
    return [...this.#open.values()].map(({ id, account, key, amount }) => {
      return { id, account, key, amount, charged: this.#deps.isCharged(id) }
    })
  }

  /** Returns the parts of holds on budgets. */
  onBudgets(): AuditedLease[] {
    return [...this.#open.values()].flatMap(({ id, amount: held, budgets = [] }) =>
      budgets.map(({ wallet }) => ({ id, wallet, held, ended: null })),
    )
  }

  #found({ account, key, budgets = [] }: Hold): HoldWallets {
    return {
      account: this.#wallets.get(accountWallet(account)),
      key: key === null ? null : this.#wallets.get(keyWallet(key)),
      budgets: budgets.map((budget) => ({ budget, wallet: this.#wallets.get(budget.wallet) })),
    }
  }

  /** Returns the wallets. Missing ones are opened without limits. */
  #walletsOf({ account, key, budgets = [] }: Hold): MemoryWallet[] {
    const ids = walletsOf({ account, key, budgets: budgets.map(({ wallet }) => wallet) })
    return ids.map((id) => this.#wallets.open(id))
  }
}
