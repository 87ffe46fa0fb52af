/** What is limited (spec 8). */
export type LimitKind = 'rpm' | 'tpm' | 'concurrency'

/** One limit that a request has to pass. */
export interface Limit {
  readonly kind: LimitKind
  /** The name of the level it belongs to, such as `key` or `account`. */
  readonly level: string
  /** Whose limit it is, such as an account's id. */
  readonly subject: string
  /** Most of it: in one window, or at a time. */
  readonly most: number
  /** What this request takes of it: whole requests, tokens or slots. */
  readonly cost: number
  /** Names the counter, or the set of slots, in a store. */
  readonly key: string
}

/** Everything a request asks of its limits; granted as a whole or not at all. */
export interface Demand {
  /** The call's id; names its slots. */
  readonly id: string
  /** Who is held to the wait that it was told. */
  readonly sender: string
  /** Length of a window, in milliseconds. */
  readonly windowMs: number
  /** Counted within a window. */
  readonly charges: readonly Limit[]
  /** Held until the call ends. */
  readonly slots: readonly Limit[]
}

/** How a window stands after a verdict. */
export interface Count {
  readonly used: number
  /** Milliseconds until the window ends; its whole length where none is open. */
  readonly resetMs: number
}

/** What a store says to a demand. */
export interface Verdict {
  /** The limit that refused it, the one with the longest wait; undefined: admitted. */
  readonly refusedBy: Limit | undefined
  /**
   * Milliseconds until that limit lets this demand through. Of an admitted one: how long its sender, of which a larger
   * one was refused, still has to wait with that; 0: no wait is on.
   */
  readonly waitMs: number
  /** One for each charge, in their order. */
  readonly counts: readonly Count[]
}

/**
 * Keeps counts and slots. A refused demand leaves no trace in either; a window is fixed and begins with its first hit.
 * A sender that comes back more than a second after its refusal and before the time it was first told waits a second
 * longer for each time it does, at most {@link MOST_WAIT_MS}. Each call of it that ended during the wait pardons one
 * such request.
 */
export interface LimitStore {
  /**
   * Admits or refuses a demand as a whole; at once where that is possible.
   *
   * @throws StoreAway (or rejects with it) when the store does not answer. It may have admitted the demand all the same, so
   *   what follows is {@link hold} where the call runs, and {@link release} in any case.
   */
  admit(demand: Demand): Verdict | PromiseLike<Verdict>
  /** Takes slots without asking, for a call that runs although the store was away when it was asked. */
  hold(demand: Demand): void
  /**
   * Gives the slots of a demand back; twice, or never taken, does no harm. Of one that was neither admitted in time
   * nor held, an admission that comes to light later is undone.
   */
  release(demand: Demand): void
  /**
   * An admitted call of this sender ended. If it did so during a wait of its sender, whoever made it could not know: the
   * next request of the sender is pardoned. A store that prolongs no wait needs none of this.
   */
  ended?(sender: string): void
}

/** The longest wait that a caller is told, in milliseconds: official SDKs ignore more. */
export const MOST_WAIT_MS = 60_000

/** Nobody knows when a slot comes free: the least wait there is, in milliseconds. */
export const SLOT_WAIT_MS = 1000

/** Requests sent up to this long after a refusal were on their way already, in milliseconds. */
export const GRACE_MS = 1000

/**
 * A call that ends sooner than this after the refusal pardons nothing, in milliseconds: what its caller sends next comes
 * within {@link GRACE_MS} anyway.
 */
export const PARDON_MS = 500

/** What each request that does not honour its wait adds to it, in milliseconds. */
export const PROLONG_MS = 1000
