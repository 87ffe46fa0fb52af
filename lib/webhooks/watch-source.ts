/** The money of a prepaid account, in nano-units. */
export interface WatchedBalance {
  readonly account: string
  readonly balance: bigint
  /** Below this, it is low: a tenth of the last sum that was paid in, or 0. */
  readonly threshold: bigint
}

/** A key that ends soon. */
export interface EndingKey {
  readonly key: string
  readonly account: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

/** What {@link WebhookWatch} looks up. */
export interface WatchSource {
  /**
   * Returns accounts that are low and were not announced as low, or were and no longer are: of those whose balance may
   * have changed since a time, and in turns of all that were announced as low.
   */
  balances(since: number, limit: number): Promise<readonly WatchedBalance[]>

  /** Returns keys that end between two times, the first to end first, except those that were announced. */
  endingKeys(from: number, until: number, limit: number): Promise<readonly EndingKey[]>
}
