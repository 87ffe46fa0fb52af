/** Keeps which calls hold a slot of a limit. */
export interface SlotStore {
  /** Takes a slot for a call. Returns false if `max` other calls hold one. */
  acquire(key: string, id: string, max: number): Promise<boolean>
  /** Takes a slot for a call even if all are taken. */
  hold(key: string, id: string): void
  /** Gives a slot back. Returns a promise that resolves when it is free for every process; it never rejects. */
  release(key: string, id: string): Promise<void> | undefined
  /** Returns whether calls of this process alone hold `max` slots. */
  isFull(key: string, max: number): boolean
}

/** The slots of one process. */
export class MemorySlots implements SlotStore {
  readonly #holders = new Map<string, Set<string>>()

  async acquire(key: string, id: string, max: number): Promise<boolean> {
    const holders = this.#holders.get(key)
    if (holders && holders.size >= max && !holders.has(id)) return false
    this.hold(key, id)
    return true
  }

  hold(key: string, id: string): void {
    const holders = this.#holders.get(key)
    if (holders) holders.add(id)
    else this.#holders.set(key, new Set([id]))
  }

  release(key: string, id: string): undefined {
    const holders = this.#holders.get(key)
    if (holders?.delete(id) && holders.size === 0) this.#holders.delete(key)
  }

  isFull(key: string, max: number): boolean {
    return (this.#holders.get(key)?.size ?? 0) >= max
  }

  /** Returns whether a call holds a slot. */
  has(key: string, id: string): boolean {
    return this.#holders.get(key)?.has(id) ?? false
  }

  /** Returns the calls that hold slots, by key. */
  byKey(): Iterable<[key: string, ids: ReadonlySet<string>]> {
    return this.#holders.entries()
  }
}
