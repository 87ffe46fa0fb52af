import { assertFigure } from '../../core/catalog/money.ts'
import { type CallUsage, shareOfCharge } from '../../core/usage/index.ts'
import type { AuditedCharges, AuditedDeposit, AuditedVoid, AuditedWallet } from '../audit.ts'
import { stateOf, type WalletFigures } from '../lease.ts'
import type { ChargeRecord, DepositResult, WalletStatement } from '../ledger.ts'
import type { Rows, StandingCharge } from '../plan.ts'
import { accountWallet, type WalletId } from '../wallet.ts'

/** A wallet in this process's memory. */
export interface MemoryWallet extends WalletFigures {
  readonly id: WalletId
  /** Amounts by their reference. */
  readonly deposits: Map<string, bigint>
}

/** All wallets of a ledger in memory. */
export class MemoryWallets implements Rows<WalletId, MemoryWallet> {
  readonly #byId = new Map<WalletId, MemoryWallet>()

  get(id: WalletId): MemoryWallet | undefined {
    return this.#byId.get(id)
  }

  /** Returns a wallet. A missing one is opened, without a limit by default. */
  open(id: WalletId, limited = false): MemoryWallet {
    const known = this.#byId.get(id)
    if (known) return known
    const figures = { limited, funds: 0n, spent: 0n, leased: 0n, overrun: 0n }
    const wallet: MemoryWallet = { id, ...figures, deposits: new Map() }
    this.#byId.set(id, wallet)
    return wallet
  }

  deposit(account: string, amount: bigint, reference: string, limited: boolean): DepositResult {
    const wallet = this.#byId.get(accountWallet(account))
    const standing = wallet?.deposits.get(reference)
    if (standing !== undefined) return standing === amount ? 'known' : 'conflict'
    assertFigure(amount, `deposit "${reference}"`)
    const funds = assertFigure((wallet?.funds ?? 0n) + amount, `funds of "${account}"`)
    const opened = this.open(accountWallet(account), limited)
    opened.funds = funds
    opened.deposits.set(reference, amount)
    return 'deposited'
  }

  setLimit(id: WalletId, { limited, quota }: { limited: boolean; quota?: bigint }): void {
    const wallet = this.open(id, limited)
    wallet.limited = limited
    if (quota !== undefined) wallet.funds = quota
  }

  statement(id: WalletId): WalletStatement | undefined {
    const wallet = this.#byId.get(id)
    return wallet && { wallet: id, ...stateOf(wallet), overrun: wallet.overrun }
  }

  deposits(): AuditedDeposit[] {
    return [...this.#byId.values()].flatMap(({ id, deposits }) =>
      Array.from(deposits.values(), (amount) => ({ account: id.slice('account:'.length), amount })),
    )
  }

  all(): AuditedWallet[] {
    return Array.from(this.#byId.values(), (wallet) => ({ ...wallet }))
  }
}

interface KeptCharge extends Omit<StandingCharge, 'usage'> {
  voided: boolean
  readonly cost: bigint | null
  readonly at: number
  readonly usage: CallUsage | null
}

/** The sum of the older charges of one account, key and set of budgets. */
interface FoldedCharges extends AuditedCharges {
  amount: bigint
  count: number
}

/** Charges and voids by their request id. If there are too many, the older half is merged into sums. */
export class MemoryCharges implements Rows<string, StandingCharge> {
  readonly #half: number
  /**
   * Two Maps take turns, because one from which the oldest is deleted for each new one is rebuilt again and again, and is
   * slow to look up in.
   */
  #newer = new Map<string, KeptCharge>()
  #older = new Map<string, KeptCharge>()
  /** By account, then by key and budgets. */
  readonly #folded = new Map<string, Map<string | null, FoldedCharges>>()

  constructor(most: number) {
    this.#half = Math.floor(most / 2)
  }

  /** Returns a charge or void; undefined if there is none. */
  get(requestId: string): StandingCharge | undefined {
    const kept = this.#find(requestId)
    if (!kept) return undefined
    const { account, key, amount, voided, budgets } = kept
    const usage = account === null ? null : shareOfCharge({ ...kept, account })
    return { account, key, amount, voided, budgets, usage }
  }

  add(charge: Omit<ChargeRecord, 'basis'>): void {
    const { requestId, account, key, amount, budgets, cost = null, at, usage = null } = charge
    if (this.#newer.size >= this.#half) this.#foldOlder()
    this.#newer.set(requestId, { account, key, amount, voided: false, budgets, cost, at, usage })
  }

  /** Undoes a charge, or prevents one that arrives later. */
  void(requestId: string): void {
    const kept = this.#find(requestId)
    if (kept) {
      kept.voided = true
      return
    }
    if (this.#newer.size >= this.#half) this.#foldOlder()
    const nothing = { account: null, key: null, amount: 0n, cost: null, at: 0, usage: null }
    this.#newer.set(requestId, { ...nothing, voided: true })
  }

  charges(): AuditedCharges[] {
    const charges: AuditedCharges[] = [...this.#folded.values()].flatMap((byKey) => [...byKey.values()])
    for (const [, { account, key, amount, budgets }] of this.#all()) {
      if (account !== null) charges.push({ account, key, amount, budgets, count: 1 })
    }
    return charges
  }

  voids(): AuditedVoid[] {
    const voids: AuditedVoid[] = []
    for (const [requestId, { account, key, amount, budgets, voided }] of this.#all()) {
      if (!voided || account === null) continue
      voids.push({ requestId, account, key, amount, charge: { account, key, amount, budgets } })
    }
    return voids
  }

  #find(requestId: string): KeptCharge | undefined {
    return this.#newer.get(requestId) ?? this.#older.get(requestId)
  }

  *#all(): Iterable<[string, KeptCharge]> {
    yield* this.#older
    yield* this.#newer
  }

  #foldOlder(): void {
    for (const { account, key, amount, voided, budgets } of this.#older.values()) {
      if (account === null) continue
      const byKey = this.#folded.get(account) ?? new Map<string | null, FoldedCharges>()
      this.#folded.set(account, byKey)
      const name = budgets ? JSON.stringify([key, ...budgets]) : key
      const sum = byKey.get(name) ?? { account, key, budgets, amount: 0n, count: 0 }
      byKey.set(name, sum)
      sum.count++
      if (!voided) sum.amount += amount
    }
    this.#older = this.#newer
    this.#newer = new Map()
  }
}
