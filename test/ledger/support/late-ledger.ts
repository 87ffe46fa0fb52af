import {
  type DepositResult,
  type LeaseAnswer,
  type LeaseChange,
  type Ledger,
  type LedgerAdmin,
  type LedgerCheck,
  MemoryLedger,
  type MemoryLedgerOptions,
  type OpenLease,
  type Settlement,
  type SettlementResult,
  type WalletId,
  type WalletStatement,
} from '../../../lib/ledger/index.ts'

/** A ledger whose commits a test lets through when it wants. */
export class LateLedger implements Ledger, LedgerAdmin {
  readonly settlesRecords = false
  readonly #ledger: MemoryLedger
  readonly #held: (() => void)[] = []
  #open = false

  constructor(options: MemoryLedgerOptions) {
    this.#ledger = new MemoryLedger(options)
  }

  /** Commits that wait. */
  get held(): number {
    return this.#held.length
  }

  /** Lets all commits through, from now on too. */
  open(): void {
    this.#open = true
    for (const commit of this.#held.splice(0)) commit()
  }

  settle(settlements: readonly Settlement[]): Promise<readonly SettlementResult[]> {
    return new Promise((resolve) => {
      const commit = () => resolve(this.#ledger.settle(settlements))
      if (this.#open) commit()
      else this.#held.push(commit)
    })
  }

  change(owner: string, changes: readonly LeaseChange[]): Promise<readonly LeaseAnswer[]> {
    return this.#ledger.change(owner, changes)
  }

  renew(leases: readonly string[], at: number): Promise<ReadonlySet<string>> {
    return this.#ledger.renew(leases, at)
  }

  leases(): Promise<readonly OpenLease[]> {
    return this.#ledger.leases()
  }

  sweep(lease: string, beats: number): Promise<boolean> {
    return this.#ledger.sweep(lease, beats)
  }

  deposit(account: string, amount: bigint, reference: string): Promise<DepositResult> {
    return this.#ledger.deposit(account, amount, reference)
  }

  wallets(ids: readonly WalletId[]): Promise<readonly WalletStatement[]> {
    return this.#ledger.wallets(ids)
  }

  setLimit(wallet: WalletId, limit: { limited: boolean; quota?: bigint }): Promise<void> {
    return this.#ledger.setLimit(wallet, limit)
  }

  check(): Promise<LedgerCheck> {
    return this.#ledger.check()
  }
}
