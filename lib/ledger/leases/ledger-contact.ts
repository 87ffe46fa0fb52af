import type { Clock } from '../pool/clock.ts'

/** While the ledger does not answer, one admission in this time waits for it, in milliseconds. */
const TRIAL_MS = 500

/** Whether the ledger answers what leases are asked for. */
export class LedgerContact {
  readonly #clock: Clock
  readonly #patienceMs: number
  readonly #onChange: (error?: unknown) => void
  #failingSince: number | undefined
  #away = false
  #triedAt = Number.NEGATIVE_INFINITY

  /** @param patienceMs how long it may fail before it counts as away. */
  constructor(clock: Clock, patienceMs: number, onChange: (error?: unknown) => void) {
    this.#clock = clock
    this.#patienceMs = patienceMs
    this.#onChange = onChange
  }

  get away(): boolean {
    return this.#away
  }

  /** Whether an admission may wait for an answer. */
  mayAsk(): boolean {
    if (!this.#away) return true
    const now = this.#clock.now()
    if (now - this.#triedAt < TRIAL_MS) return false
    this.#triedAt = now
    return true
  }

  answered(): void {
    this.#failingSince = undefined
    this.#turn(false)
  }

  failed(error: unknown): void {
    const now = this.#clock.now()
    this.#failingSince ??= now
    if (now - this.#failingSince >= this.#patienceMs) this.#turn(true, error)
  }

  /** It has not answered for longer than anybody waits. */
  late(): void {
    this.#failingSince ??= this.#clock.now()
    this.#turn(true)
  }

  #turn(away: boolean, error?: unknown): void {
    if (this.#away === away) return
    this.#away = away
    this.#onChange(error)
  }
}
