import type { LeaseAnswer, LeaseChange, Ledger } from '../ledger.ts'
import { WalletsLocked } from '../wallets-locked.ts'
import type { Clock } from './clock.ts'
import type { LedgerHealth } from './ledger-health.ts'
import type { LedgerTimes } from './ledger-times.ts'
import { LedgerLate } from './timely-ledger.ts'
import type { WalletLease } from './wallet-lease.ts'

/** The parts that {@link LeaseChanges} works with. */
export interface LeaseChangesDeps {
  readonly ledger: Pick<Ledger, 'change'>
  readonly owner: string
  readonly clock: Clock
  readonly health: LedgerHealth
  readonly times: Pick<LedgerTimes, 'admissionMs'>
}

/** Most changes in one operation, so that it stays within its time limit. */
const AT_ONCE = 200
/** How long a change waits whose wallet another transaction has locked. */
const LOCK_RETRY_MS = 300
const BACKOFF_MS = [50, 100, 200, 400, 500] as const

/**
 * Asks the ledger to change leases. When the ledger has answered, the next operation takes all changes that have
 * gathered meanwhile. A change without an answer is repeated until it has one.
 */
export class LeaseChanges {
  readonly #deps: LeaseChangesDeps
  readonly #asking = new Set<WalletLease>()
  /**
   * The leases whose rows another transaction has locked, or that alone get no answer. They are tried apart, so that only their
   * own calls wait.
   */
  readonly #locked = new Set<WalletLease>()
  #isRetrying = false
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
    if (this.#locked.has(wallet)) return
    this.#asking.add(wallet)
    if (this.#running) return
    this.#running = true
    setImmediate(() => void this.#run())
  }

  /** Resolves when there is nothing left to change, also of wallets that are locked. */
  idle(): Promise<void> {
    if (!this.#running && !this.#isRetrying) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  async #run(): Promise<void> {
    while (this.#asking.size > 0) await this.#call(this.#batch())
    this.#running = false
    this.#ended()
  }

  #ended(): void {
    if (this.#running || this.#isRetrying) return
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
    const { clock, health, times } = this.#deps
    const onTime = clock.after(times.admissionMs, () => health.late())
    try {
      await this.#make(batch)
      onTime()
      this.#failures = 0
      this.#atOnce = Math.min(AT_ONCE, this.#atOnce * 8)
      health.answered()
    } catch (error) {
      onTime()
      if (error instanceof WalletsLocked && this.#lock(batch, error)) {
        health.answered()
        return
      }
      health.failed(error)
      this.#atOnce = Math.max(1, Math.ceil(batch.size / 8))
      if (isLateAlone(batch, error)) this.#part(batch.keys())
      else for (const wallet of batch.keys()) this.#asking.add(wallet)
      await this.#pause()
    }
  }

  async #make(batch: ReadonlyMap<WalletLease, LeaseChange>): Promise<void> {
    const { ledger, owner } = this.#deps
    const answers = await ledger.change(owner, [...batch.values()])
    if (answers.length !== batch.size) throw new Error('the ledger did not answer every change')
    const wallets = [...batch.keys()]
    for (const [i, wallet] of wallets.entries()) wallet.answered(answers[i] as LeaseAnswer)
    serveAll(wallets)
  }

  /** Parts the wallets that are locked from the others, which are asked for again. Returns whether there are any. */
  #lock(batch: ReadonlyMap<WalletLease, LeaseChange>, { wallets }: WalletsLocked): boolean {
    const held: WalletLease[] = []
    for (const wallet of batch.keys()) {
      if (wallets.has(wallet.wallet)) held.push(wallet)
      else this.#asking.add(wallet)
    }
    this.#part(held)
    return held.length > 0
  }

  #part(wallets: Iterable<WalletLease>): void {
    for (const wallet of wallets) this.#locked.add(wallet)
    if (!this.#isRetrying) void this.#retry()
  }

  /** Tries the wallets that are locked, apart from all others, until none is. */
  async #retry(): Promise<void> {
    this.#isRetrying = true
    while (this.#locked.size > 0) {
      await new Promise<void>((resolve) => this.#deps.clock.after(LOCK_RETRY_MS, resolve))
      const batch = new Map<WalletLease, LeaseChange>()
      for (const wallet of this.#locked) {
        const change = batch.size < this.#atOnce ? wallet.nextChange() : undefined
        if (change) batch.set(wallet, change)
        else if (batch.size < this.#atOnce) this.#locked.delete(wallet)
      }
      if (batch.size === 0) continue
      const failure = await this.#make(batch).catch((error: unknown) => error)
      for (const wallet of batch.keys()) {
        if (failure instanceof WalletsLocked && failure.wallets.has(wallet.wallet)) continue
        if (isLateAlone(batch, failure)) continue
        this.#locked.delete(wallet)
        // It may have been asked again meanwhile. After another failure, the ledger may be away, which those who ask
        // together find out.
        this.ask(wallet)
      }
    }
    this.#isRetrying = false
    this.#ended()
  }

  #pause(): Promise<void> {
    const ms = BACKOFF_MS[Math.min(this.#failures++, BACKOFF_MS.length - 1)] ?? 500
    return new Promise((resolve) => this.#deps.clock.after(ms, resolve))
  }
}

/** Whether one wallet alone got no answer. */
function isLateAlone(batch: ReadonlyMap<WalletLease, LeaseChange>, failure: unknown): boolean {
  return batch.size === 1 && failure instanceof LedgerLate
}

/** Serves the calls of each account once, with all of its wallets that the ledger has reported. */
function serveAll(wallets: readonly WalletLease[]): void {
  for (const [admissions, reported] of Map.groupBy(wallets, (wallet) => wallet.admissions))
    admissions.serve(reported)
}
