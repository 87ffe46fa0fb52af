/** How much each account has of something, and which account has the most. Looking that up rarely takes more than one step. */
export class AccountSizes {
  readonly #sizes = new Map<string, number>()
  /** Undefined: not known at the moment. */
  #largest: string | undefined
  /** No other account has more than this. */
  #mostOfOthers = 0

  of(account: string): number {
    return this.#sizes.get(account) ?? 0
  }

  add(account: string, size: number): void {
    const sum = this.of(account) + size
    this.#sizes.set(account, sum)
    if (this.#largest === undefined || account === this.#largest) return
    const most = this.of(this.#largest)
    if (sum >= most) {
      this.#largest = account
      this.#mostOfOthers = most
    } else if (sum > this.#mostOfOthers) this.#mostOfOthers = sum
  }

  remove(account: string, size: number): void {
    const left = this.of(account) - size
    if (left > 0) this.#sizes.set(account, left)
    else this.#sizes.delete(account)
    if (account === this.#largest && (left <= 0 || left < this.#mostOfOthers)) this.#largest = undefined
  }

  /** Returns the account that has the most; undefined if none has anything. Of several, the one that came to it last. */
  largest(): string | undefined {
    if (this.#largest === undefined) this.#search()
    return this.#largest
  }

  #search(): void {
    let most = 0
    this.#mostOfOthers = 0
    for (const [account, size] of this.#sizes) {
      if (size > most) {
        this.#mostOfOthers = most
        most = size
        this.#largest = account
      } else if (size > this.#mostOfOthers) this.#mostOfOthers = size
    }
  }
}
