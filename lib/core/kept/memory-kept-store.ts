import { type KeptName, type KeptStore, type KeptThing, ownThing } from './kept-store.ts'

/** Options of {@link MemoryKeptStore}. */
export interface MemoryKeptStoreOptions {
  /** Most names to hold; the oldest are dropped and no longer found. Defaults to 100000. */
  maxIds?: number
}

/**
 * A store of kept things in this process's memory. It serves one process and ends with it.
 *
 * @throws TypeError at construction if an option is invalid.
 * @example
 * const kept = new KeptThings({ store: new MemoryKeptStore({ maxIds: 10_000 }) })
 */
export class MemoryKeptStore implements KeptStore {
  readonly #maxIds: number
  /** In the order of insertion. */
  readonly #byName = new Map<string, readonly KeptThing[]>()
  /** One iterator for all deletions: a new one would skip all deleted entries each time. */
  readonly #oldest = this.#byName.keys()

  constructor(options: MemoryKeptStoreOptions = {}) {
    const { maxIds = 100_000 } = options
    if (!(maxIds >= 1)) throw new TypeError('MemoryKeptStore: "maxIds" must be at least 1')
    this.#maxIds = maxIds
  }

  async remember(things: readonly KeptThing[]): Promise<void> {
    for (const thing of things) {
      this.#byName.set(keyOf(thing), [...this.#without(thing.account, thing), thing])
      if (this.#byName.size <= this.#maxIds) continue
      const oldest = this.#oldest.next().value
      if (oldest !== undefined) this.#byName.delete(oldest)
    }
  }

  async find(account: string, names: readonly KeptName[]): Promise<KeptThing[]> {
    return names.flatMap((name) => ownThing(this.#byName.get(keyOf(name)) ?? [], account) ?? [])
  }

  async forget(account: string, name: KeptName): Promise<void> {
    const others = this.#without(account, name)
    if (others.length > 0) this.#byName.set(keyOf(name), others)
    else this.#byName.delete(keyOf(name))
  }

  async prune(before: number, limit: number): Promise<number> {
    let pruned = 0
    for (const things of this.#byName.values()) {
      for (const thing of things) {
        if (pruned >= limit) return pruned
        if (thing.expiresAt === null || thing.expiresAt >= before) continue
        await this.forget(thing.account, thing)
        pruned++
      }
    }
    return pruned
  }

  #without(account: string, name: KeptName): readonly KeptThing[] {
    return (this.#byName.get(keyOf(name)) ?? []).filter((thing) => thing.account !== account)
  }
}

/** A kind has no space in it. */
function keyOf({ kind, id }: KeptName): string {
  return `${kind} ${id}`
}
