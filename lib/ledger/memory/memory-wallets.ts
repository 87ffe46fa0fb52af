import { assertFigure } from '../amounts.ts'
import type { AuditedDeposit, AuditedWallet } from '../audit.ts'
import { stateOf, type WalletFigures } from '../lease.ts'
import type { DepositResult, WalletStatement } from '../ledger.ts'
import type { SpentWallets } from '../settlement.ts'
import { accountWallet, keyWallet, type WalletId } from '../wallet.ts'

/** A wallet in this process's memory. */
export interface MemoryWallet extends WalletFigures {
  readonly id: WalletId
  /** Amounts by their reference. */
  readonly deposits: Map<string, bigint>
}

/** All wallets of a ledger in memory. */
export class MemoryWallets implements SpentWallets {
  readonly #byId = new Map<WalletId, MemoryWallet>()
  /** The same wallets by the ids that settlements have, so that a charge need not build wallet names. */
  readonly #accounts = new Map<string, MemoryWallet>()
  readonly #keys = new Map<string, MemoryWallet>()

  get(id: WalletId): MemoryWallet | undefined {
    return this.#byId.get(id)
  }

  /** @param limited whether a missing wallet is opened with a limit. */
  account(id: string, limited = false): MemoryWallet {
    return this.#accounts.get(id) ?? this.#open(accountWallet(id), limited)
  }

  key(id: string, limited = false): MemoryWallet {
    return this.#keys.get(id) ?? this.#open(keyWallet(id), limited)
  }

  deposit(account: string, amount: bigint, reference: string, limited: boolean): DepositResult {
    const wallet = this.#accounts.get(account)
    const standing = wallet?.deposits.get(reference)
    if (standing !== undefined) return standing === amount ? 'known' : 'conflict'
    assertFigure(amount, `deposit "${reference}"`)
    const funds = assertFigure((wallet?.funds ?? 0n) + amount, `funds of "${account}"`)
    const opened = wallet ?? this.account(account, limited)
    opened.funds = funds
    opened.deposits.set(reference, amount)
    return 'deposited'
  }

  setLimit(id: WalletId, { limited, quota }: { limited: boolean; quota?: bigint }): void {
    const wallet = this.#byId.get(id) ?? this.#open(id, limited)
    wallet.limited = limited
    if (quota !== undefined) wallet.funds = quota
  }

  statement(id: WalletId): WalletStatement | undefined {
    const wallet = this.#byId.get(id)
    return wallet && { wallet: id, ...stateOf(wallet), overrun: wallet.overrun }
  }

  deposits(): AuditedDeposit[] {
    return [...this.#accounts].flatMap(([account, { deposits }]) =>
      [...deposits.values()].map((amount) => ({ account, amount })),
    )
  }

  all(): AuditedWallet[] {
    return Array.from(this.#byId.values(), (wallet) => ({ ...wallet }))
  }

  #open(id: WalletId, limited: boolean): MemoryWallet {
    const figures = { limited, funds: 0n, spent: 0n, leased: 0n, overrun: 0n }
    const wallet: MemoryWallet = { id, ...figures, deposits: new Map() }
    this.#byId.set(id, wallet)
    const bare = id.slice(id.indexOf(':') + 1)
    if (id.startsWith('account:')) this.#accounts.set(bare, wallet)
    else this.#keys.set(bare, wallet)
    return wallet
  }
}
