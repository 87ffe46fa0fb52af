import { isLocked } from '../driver/postgres/lock-timeout.ts'

/** Does something for one account after the other, without those that have locked rows: each would be waited for again. */
export class UnlessLocked {
  readonly #locked = new Map<string, unknown>()

  async run(account: string, work: () => Promise<unknown>): Promise<void> {
    if (this.#locked.has(account)) return
    try {
      await work()
    } catch (error) {
      if (!isLocked(error)) throw error
      this.#locked.set(account, error)
    }
  }

  /** @throws the error of the first account that was left out. */
  throwIfLocked(): void {
    for (const error of this.#locked.values()) throw error
  }
}
