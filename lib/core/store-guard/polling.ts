import type { OptionRule } from '../options/index.ts'

/** The rule for an option that says how often a store is read, in milliseconds: changes take effect within 5 s. */
export const aPollTime: OptionRule = {
  be: 'above 0 and at most 4000',
  accepts: (value) => typeof value === 'number' && value > 0 && value <= 4000,
}

const POLL_MS = 2000

/** Reads a shared store again and again, one read at a time, until it is closed. */
export class Polling {
  readonly #read: () => Promise<void>
  readonly #pollMs: number
  #reading: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #closed = false

  /**
   * @param read rejects during an outage, which it logs.
   * @param pollMs the time between two reads; undefined = 2000.
   */
  constructor(read: () => Promise<void>, pollMs = POLL_MS) {
    this.#read = read
    this.#pollMs = pollMs
    this.#schedule()
  }

  /** Whether what is read is of no use any more. */
  get closed(): boolean {
    return this.#closed
  }

  /** Reads now. Rejects as the read does. */
  async now(): Promise<void> {
    // A read that has begun before may not see the latest change.
    await this.#reading?.catch(() => {})
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  #schedule(): void {
    if (this.#closed) return
    const again = (): void => this.#schedule()
    this.#timer = setTimeout(() => void this.now().then(again, again), this.#pollMs).unref()
  }
}
