import { aNumber, checkOptions } from '../options/index.ts'
import { type KeptName, type KeptPage, type KeptStore, type KeptThing, ownThing } from './kept-store.ts'

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
  /** The names of each account's things of each kind. */
  readonly #namesOf = new Map<string, Set<string>>()
  /** One iterator for all deletions: a new one would skip all deleted entries each time. */
  readonly #oldest = this.#byName.keys()

  constructor(options: MemoryKeptStoreOptions = {}) {
    checkOptions<MemoryKeptStoreOptions>('MemoryKeptStore', options, { maxIds: aNumber('at least 1', 1) })
    const { maxIds = 100_000 } = options
    this.#maxIds = maxIds
  }

  async remember(things: readonly KeptThing[]): Promise<void> {
    for (const thing of things) {
      const name = keyOf(thing)
      const known = this.#byName.get(name) ?? []
      const { createdAt } = known.find(({ account }) => account === thing.account) ?? thing
      this.#byName.set(name, [...without(known, thing.account), { ...thing, createdAt }])
      this.#addName(thing, name)
      if (this.#byName.size <= this.#maxIds) continue
      const oldest = this.#oldest.next().value
      if (oldest !== undefined) this.#drop(oldest, [])
    }
  }

  async find(account: string, names: readonly KeptName[]): Promise<KeptThing[]> {
    return names.flatMap((name) => ownThing(this.#byName.get(keyOf(name)) ?? [], account) ?? [])
  }

  async list(account: string, kind: string, page: KeptPage): Promise<KeptThing[]> {
    const { lines, order, after, aliveAt, limit } = page
    const direction = order === 'newest' ? -1 : 1
    const isOnPage = (thing: KeptThing): boolean =>
      lines.includes(thing.line) &&
      (thing.expiresAt === null || thing.expiresAt > aliveAt) &&
      (!after || direction * inOrder(thing, after) > 0)
    return [...(this.#namesOf.get(ownerOf({ account, kind })) ?? [])]
      .flatMap((name) => ownThing(this.#byName.get(name) ?? [], account) ?? [])
      .filter(isOnPage)
      .sort((one, other) => direction * inOrder(one, other))
      .slice(0, limit)
  }

  async forget(account: string, name: KeptName): Promise<void> {
    const key = keyOf(name)
    this.#drop(key, without(this.#byName.get(key) ?? [], account))
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

  #addName(thing: KeptThing, name: string): void {
    const owner = ownerOf(thing)
    const names = this.#namesOf.get(owner) ?? new Set()
    this.#namesOf.set(owner, names.add(name))
  }

  /** Drops the records of a name, except for those that stay. */
  #drop(name: string, stay: readonly KeptThing[]): void {
    for (const thing of this.#byName.get(name) ?? []) {
      if (stay.includes(thing)) continue
      const owner = ownerOf(thing)
      const names = this.#namesOf.get(owner)
      names?.delete(name)
      if (names?.size === 0) this.#namesOf.delete(owner)
    }
    if (stay.length > 0) this.#byName.set(name, stay)
    else this.#byName.delete(name)
  }
}

function without(things: readonly KeptThing[], account: string): readonly KeptThing[] {
  return things.filter((thing) => thing.account !== account)
}

type Place = Pick<KeptThing, 'createdAt' | 'id'>

function inOrder(one: Place, other: Place): number {
  return one.createdAt - other.createdAt || (one.id < other.id ? -1 : one.id > other.id ? 1 : 0)
}

/** A kind has no space in it. */
function keyOf({ kind, id }: KeptName): string {
  return `${kind} ${id}`
}

function ownerOf({ account, kind }: Pick<KeptThing, 'account' | 'kind'>): string {
  return `${kind} ${account}`
}
