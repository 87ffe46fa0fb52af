/** An account may have this share of the bytes that are free, so that there is always room for another. */
const SHARE = 4

/** Memory that all accounts share, such as what waits for a store, and how much of it each has. */
export class SharedBytes {
  /** The number of bytes of all accounts. */
  size = 0
  readonly #most: number
  readonly #bytesOf = new Map<string, number>()

  /** @param most the largest number of bytes of all accounts together. */
  constructor(most: number) {
    this.#most = most
  }

  /** Whether an account may have so many bytes more. */
  hasRoom(account: string, bytes = 0): boolean {
    return (this.#bytesOf.get(account) ?? 0) + bytes <= (this.#most - this.size) / SHARE
  }

  /** Whether an account has some. */
  has(account: string): boolean {
    return this.#bytesOf.has(account)
  }

  add(account: string, bytes: number): void {
    this.size += bytes
    this.#bytesOf.set(account, (this.#bytesOf.get(account) ?? 0) + bytes)
  }

  remove(account: string, bytes: number): void {
    this.size -= bytes
    const left = (this.#bytesOf.get(account) ?? 0) - bytes
    if (left > 0) this.#bytesOf.set(account, left)
    else this.#bytesOf.delete(account)
  }
}
