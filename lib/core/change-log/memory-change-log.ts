import type { ChangeLog, ChangeQuery, RecordedChange } from './change-log.ts'

/**
 * What operators have changed since the process started, in its memory: as long as the process lives. Give the same one
 * to every store that records.
 *
 * @example
 * const changes = new MemoryChangeLog()
 * const accounts = new MemoryAccountStore({ ledger, keys, changes })
 */
export class MemoryChangeLog implements ChangeLog {
  readonly #changes: RecordedChange[] = []

  /** All of them, in the order in which they were made. */
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
