import { ownRecord, type ResponseRecord, type ResponseStore } from './response-store.ts'

/** Options of {@link MemoryResponseStore}. */
export interface MemoryResponseStoreOptions {
  /** Most ids to hold; the oldest are dropped and no longer found. Defaults to 100000. */
  maxIds?: number
}

/**
 * A response store in this process's memory. It serves one process and ends with it.
 *
 * @throws TypeError at construction if an option is invalid.
 * @example
 * const registry = new ResponseRegistry({ store: new MemoryResponseStore({ maxIds: 10_000 }) })
 */
export class MemoryResponseStore implements ResponseStore {
  readonly #maxIds: number
  /** In the order of insertion. */
  readonly #byId = new Map<string, readonly ResponseRecord[]>()
  /** One iterator for all deletions: a new one would skip all deleted entries each time. */
  readonly #oldest = this.#byId.keys()

  constructor(options: MemoryResponseStoreOptions = {}) {
    const { maxIds = 100_000 } = options
    if (!(maxIds >= 1)) throw new TypeError('MemoryResponseStore: "maxIds" must be at least 1')
    this.#maxIds = maxIds
  }

  async remember(record: ResponseRecord): Promise<void> {
    const others = this.#without(record.account, record.id)
    this.#byId.set(record.id, [...others, record])
    if (this.#byId.size <= this.#maxIds) return
    const oldest = this.#oldest.next().value
    if (oldest !== undefined) this.#byId.delete(oldest)
  }

  async find(account: string, id: string): Promise<ResponseRecord | undefined> {
    return ownRecord(this.#byId.get(id) ?? [], account)
  }

  async forget(account: string, id: string): Promise<void> {
    const others = this.#without(account, id)
    if (others.length > 0) this.#byId.set(id, others)
    else this.#byId.delete(id)
  }

  async prune(before: number, limit: number): Promise<number> {
    let pruned = 0
    for (const records of this.#byId.values()) {
      for (const { account, id, createdAt } of records) {
        if (pruned >= limit) return pruned
        if (createdAt >= before) continue
        await this.forget(account, id)
        pruned++
      }
    }
    return pruned
  }

  #without(account: string, id: string): readonly ResponseRecord[] {
    return (this.#byId.get(id) ?? []).filter((record) => record.account !== account)
  }
}
