import type { ChangeLog, ChangeQuery, RecordedChange } from './change-log.ts'

/**
 * A change log in this process's memory, which ends with the process. Pass the same one to all stores that record changes.
 *
 * @example
 * const changes = new MemoryChangeLog()
 * const accounts = new MemoryAccountStore({ ledger, keys, changes })
 */
export class MemoryChangeLog implements ChangeLog {
  readonly #changes: RecordedChange[] = []

  /** All changes, oldest first. */
  get all(): readonly RecordedChange[] {
    return this.#changes
  }

  add(change: RecordedChange): void {
    this.#changes.push(change)
  }

  async list({ subject, before, limit }: ChangeQuery): Promise<readonly RecordedChange[]> {
    return this.#changes
      .filter((change) => subject === undefined || change.subject === subject)
      .filter(({ requestId }) => before === undefined || requestId < before)
      .sort((one, other) => (one.requestId > other.requestId ? -1 : 1))
      .slice(0, limit)
  }
}
