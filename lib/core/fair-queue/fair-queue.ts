import { AccountSizes } from './account-sizes.ts'

/** The bounds of a {@link FairQueue}. Each defaults to none. */
interface FairQueueBounds {
  /** The most items, with those that were taken and are not done. */
  readonly maxItems?: number
  /** The most bytes of these. */
  readonly maxBytes?: number
}

interface Taken {
  readonly account: string
  readonly bytes: number
}

/**
 * A bounded queue that accounts share. One account cannot push out or delay what others have in it: if it is too full, the
 * oldest item of the account that has the most waiting is dropped, and items are taken from the accounts in turn.
 *
 * A store that keeps what it has in memory uses it for the order in which items are dropped, and takes none.
 *
 * @example
 * const queue = new FairQueue<Entry>({ maxItems: 10_000 })
 * const dropped = queue.add(entry.account, entry)
 * const batch = queue.take(500)
 * await write(batch).then(() => queue.done(batch), () => queue.putBack(batch))
 */
export class FairQueue<Item> {
  readonly #maxItems: number
  readonly #maxBytes: number
  /** The waiting items by account. The accounts are in the order of their turns. */
  readonly #waiting = new Map<string, Line<Item>>()
  readonly #taken = new Map<Item, Taken>()
  /** The number of waiting items by account, without those that were taken. */
  readonly #counts = new AccountSizes()
  readonly #byteCounts = new AccountSizes()
  #size = 0
  #bytes = 0

  constructor({ maxItems = Number.POSITIVE_INFINITY, maxBytes = Number.POSITIVE_INFINITY }: FairQueueBounds) {
    this.#maxItems = maxItems
    this.#maxBytes = maxBytes
  }

  /** The number of items, with those that were taken and are not done. */
  get size(): number {
    return this.#size
  }

  /** The bytes of these. */
  get bytes(): number {
    return this.#bytes
  }

  /** The number of items that wait. */
  get waiting(): number {
    return this.#size - this.#taken.size
  }

  /**
   * Adds an item behind all others of its account. Has no effect on one that waits already.
   *
   * @param item is compared with others as the keys of a `Map` are.
   * @returns the items that had to be dropped, which may include this one.
   */
  add(account: string, item: Item, bytes = 0): readonly Item[] {
    const { items } = this.#lineOf(account)
    if (items.has(item)) return NONE
    items.set(item, bytes)
    this.#count(account, 1, bytes)
    return this.#size > this.#maxItems || this.#bytes > this.#maxBytes ? this.#dropSurplus() : NONE
  }

  /** Removes an item that waits. Returns whether it did. */
  delete(account: string, item: Item): boolean {
    const line = this.#waiting.get(account)
    const bytes = line?.items.get(item)
    if (!line || bytes === undefined) return false
    this.#remove(account, line, item, bytes)
    return true
  }

  /**
   * Takes the oldest items, one of each account in turn. They count until {@link done} or {@link putBack} is called.
   *
   * @param maxItems the most items.
   * @param maxBytes the most bytes of these. An item that has more is taken alone.
   */
  take(maxItems: number, maxBytes = Number.POSITIVE_INFINITY): Item[] {
    const batch: Item[] = []
    let left = maxBytes
    // An account that still has some goes behind the others, where this loop comes to it again.
    for (const [account, line] of this.#waiting) {
      const item = line.first()
      const bytes = line.items.get(item) as number
      left -= bytes
      if (batch.length === maxItems || (batch.length > 0 && left < 0)) break
      batch.push(item)
      this.#remove(account, line, item, bytes)
      this.#size++
      this.#bytes += bytes
      this.#taken.set(item, { account, bytes })
      if (line.items.size === 0) continue
      this.#waiting.delete(account)
      this.#waiting.set(account, line)
    }
    return batch
  }

  /** Ends items that were taken. */
  done(items: readonly Item[]): void {
    for (const item of items) {
      const taken = this.#taken.get(item)
      if (!taken) continue
      this.#taken.delete(item)
      this.#size--
      this.#bytes -= taken.bytes
    }
  }

  /** Puts items that were taken in front of all others of their accounts. */
  putBack(items: readonly Item[]): void {
    const returned = items.filter((item) => this.#taken.has(item))
    const accountOf = (item: Item) => (this.#taken.get(item) as Taken).account
    for (const [account, own] of Map.groupBy(returned, accountOf)) {
      const withBytes = own.map((item) => [item, (this.#taken.get(item) as Taken).bytes] as const)
      this.done(own)
      this.#lineOf(account).prepend(withBytes)
      for (const [, bytes] of withBytes) this.#count(account, 1, bytes)
    }
  }

  /** Removes all items, and returns how many there were. */
  clear(): number {
    const size = this.#size
    for (const [account, line] of this.#waiting)
      for (const [item, bytes] of line.items) this.#remove(account, line, item, bytes)
    this.done([...this.#taken.keys()])
    return size
  }

  #dropSurplus(): readonly Item[] {
    const dropped: Item[] = []
    for (;;) {
      const sizes =
        this.#size > this.#maxItems
          ? this.#counts
          : this.#bytes > this.#maxBytes
            ? this.#byteCounts
            : undefined
      const account = sizes?.largest()
      const line = account === undefined ? undefined : this.#waiting.get(account)
      if (account === undefined || !line) return dropped
      const item = line.first()
      this.#remove(account, line, item, line.items.get(item) as number)
      dropped.push(item)
    }
  }

  #lineOf(account: string): Line<Item> {
    let line = this.#waiting.get(account)
    if (!line) {
      line = new Line<Item>()
      this.#waiting.set(account, line)
    }
    return line
  }

  #count(account: string, items: 1 | -1, bytes: number): void {
    this.#size += items
    this.#bytes += items * bytes
    const change = items === 1 ? 'add' : 'remove'
    this.#counts[change](account, 1)
    if (bytes > 0) this.#byteCounts[change](account, bytes)
  }

  #remove(account: string, line: Line<Item>, item: Item, bytes: number): void {
    line.items.delete(item)
    this.#count(account, -1, bytes)
    if (line.items.size === 0) this.#waiting.delete(account)
  }
}

const NONE: readonly never[] = []

/** The items of one account that wait, with their bytes, oldest first. */
class Line<Item> {
  items = new Map<Item, number>()
  /** Kept, because a new iterator would walk over all deleted items. */
  #order = this.items.keys()
  #first: { readonly item: Item } | undefined

  /** Returns the oldest item. There must be one. */
  first(): Item {
    if (this.#first && this.items.has(this.#first.item)) return this.#first.item
    let next = this.#order.next()
    if (next.done) {
      this.#order = this.items.keys()
      next = this.#order.next()
    }
    this.#first = { item: next.value as Item }
    return this.#first.item
  }

  prepend(items: readonly (readonly [Item, number])[]): void {
    this.items = new Map([...items, ...this.items])
    this.#order = this.items.keys()
    this.#first = undefined
  }
}
