import type { LeaseAnswer, LeaseChange, Ledger } from '../ledger.ts'
import type { Clock } from '../pool/clock.ts'
import type { LedgerContact } from './ledger-contact.ts'

/** Something whose lease is changed. */
export interface Changing {
  /** What the ledger is to be asked: what it has not answered yet, or something new, or nothing. */
  nextChange(): LeaseChange | undefined
  answered(answer: LeaseAnswer): void
}

/** What a {@link ChangeLoop} works with. */
export interface ChangeLoopOptions<W extends Changing> {
  readonly ledger: Pick<Ledger, 'change'>
  readonly owner: string
  readonly clock: Clock
  readonly contact: LedgerContact
  /** Longer than this nobody waits for an answer, in milliseconds. */
  readonly lateMs: number
  /** Is told of wallets whose changes were answered, together. */
  readonly onAnswered: (wallets: readonly W[]) => void
}

/** Most changes in one call, so that it stays far within its bound. */
const AT_ONCE = 200
const BACKOFF_MS = [50, 100, 200, 400, 500] as const

/**
 * Asks the ledger to change leases: as soon as it has answered, the next call takes all that has gathered meanwhile.
 * What was not answered is asked for again until it is.
 */
export class ChangeLoop<W extends Changing> {
  readonly #options: ChangeLoopOptions<W>
  readonly #asking = new Set<W>()
  /** Fewer after failures: a change that can never be made hinders no others then. */
  #atOnce = AT_ONCE
  #failures = 0
  #running = false
  #idle: (() => void)[] = []

  constructor(options: ChangeLoopOptions<W>) {
    this.#options = options
  }

  ask(wallet: W): void {
    this.#asking.add(wallet)
    if (this.#running) return
    this.#running = true
    // A burst that comes in one turn of the event loop makes one call.
    setImmediate(() => void this.#run())
  }

  /** Resolves when nothing is left to ask. */
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

  #batch(): Map<W, LeaseChange> {
    const batch = new Map<W, LeaseChange>()
    for (const wallet of this.#asking) {
      if (batch.size >= this.#atOnce) break
      this.#asking.delete(wallet)
      const change = wallet.nextChange()
      if (change) batch.set(wallet, change)
    }
    return batch
  }

  async #call(batch: Map<W, LeaseChange>): Promise<void> {
    if (batch.size === 0) return
    const { ledger, owner, clock, contact, lateMs, onAnswered } = this.#options
    const onTime = clock.after(lateMs, () => contact.late())
    try {
      const answers = await ledger.change(owner, [...batch.values()])
      if (answers.length !== batch.size) throw new Error('the ledger did not answer every change')
      onTime()
      this.#failures = 0
      this.#atOnce = Math.min(AT_ONCE, this.#atOnce * 8)
      contact.answered()
      const wallets = [...batch.keys()]
      for (const [i, wallet] of wallets.entries()) wallet.answered(answers[i] as LeaseAnswer)
      onAnswered(wallets)
    } catch (error) {
      onTime()
      contact.failed(error)
      this.#atOnce = Math.max(1, Math.ceil(batch.size / 8))
      for (const wallet of batch.keys()) this.#asking.add(wallet)
      await this.#pause()
    }
  }

  #pause(): Promise<void> {
    const ms = BACKOFF_MS[Math.min(this.#failures++, BACKOFF_MS.length - 1)] ?? 500
    return new Promise((resolve) => this.#options.clock.after(ms, resolve))
  }
}
