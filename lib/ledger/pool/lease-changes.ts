import type { LeaseAnswer, LeaseChange, Ledger } from '../ledger.ts'
import type { Clock } from './clock.ts'
import type { LedgerHealth } from './ledger-health.ts'
import type { WalletLease } from './wallet-lease.ts'

/** The parts that {@link LeaseChanges} works with. */
export interface LeaseChangesDeps {
  readonly ledger: Pick<Ledger, 'change'>
  readonly owner: string
  readonly clock: Clock
  readonly health: LedgerHealth
  /** How long a call waits for an answer, in milliseconds. */
  readonly admissionMs: number
}

/** Most changes in one operation, so that it stays within its time limit. */
const AT_ONCE = 200
const BACKOFF_MS = [50, 100, 200, 400, 500] as const

/**
 * Asks the ledger to change leases. When the ledger has answered, the next operation takes all changes that have
 * gathered meanwhile. A change without an answer is repeated until it has one.
 */
export class LeaseChanges {
  readonly #deps: LeaseChangesDeps
  readonly #asking = new Set<WalletLease>()
  /** Fewer after failures, so that a change that always fails does not block others. */
  #atOnce = AT_ONCE
  #failures = 0
  #running = false
  #idle: (() => void)[] = []

  constructor(deps: LeaseChangesDeps) {
    this.#deps = deps
  }

  /** Asks the wallet for its next change, together with all others of this turn of the event loop. */
  ask(wallet: WalletLease): void {
    this.#asking.add(wallet)
    if (this.#running) return
    this.#running = true
    setImmediate(() => void this.#run())
  }

  /** Resolves when there is nothing left to change. */
  idle(): Promise<void> {
    if (!this.#running) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  async #run(): Promise<void> {
    while (this.#asking.size > 0) await this.#call(this.#batch())
    this.#running = false
    const idle = this.#idle
    this.#idle = []
    for (const resolve of idle) resolve()
  }

  #batch(): Map<WalletLease, LeaseChange> {
    const batch = new Map<WalletLease, LeaseChange>()
    for (const wallet of this.#asking) {
      if (batch.size >= this.#atOnce) break
      this.#asking.delete(wallet)
      const change = wallet.nextChange()
      if (change) batch.set(wallet, change)
    }
    return batch
  }

  async #call(batch: Map<WalletLease, LeaseChange>): Promise<void> {
    if (batch.size === 0) return
    const { ledger, owner, clock, health, admissionMs } = this.#deps
    const onTime = clock.after(admissionMs, () => health.late())
    try {
      const answers = await ledger.change(owner, [...batch.values()])
      if (answers.length !== batch.size) throw new Error('the ledger did not answer every change')
      onTime()
      this.#failures = 0
      this.#atOnce = Math.min(AT_ONCE, this.#atOnce * 8)
      health.answered()
      const wallets = [...batch.keys()]
      for (const [i, wallet] of wallets.entries()) wallet.answered(answers[i] as LeaseAnswer)
      serveAll(wallets)
    } catch (error) {
      onTime()
      health.failed(error)
      this.#atOnce = Math.max(1, Math.ceil(batch.size / 8))
      for (const wallet of batch.keys()) this.#asking.add(wallet)
      await this.#pause()
    }
  }

  #pause(): Promise<void> {
    const ms = BACKOFF_MS[Math.min(this.#failures++, BACKOFF_MS.length - 1)] ?? 500
    return new Promise((resolve) => this.#deps.clock.after(ms, resolve))
  }
}

/** Serves the calls of each account once, with all of its wallets that the ledger has reported. */
function serveAll(wallets: readonly WalletLease[]): void {
  for (const [admissions, told] of Map.groupBy(wallets, (wallet) => wallet.admissions)) admissions.serve(told)
}
