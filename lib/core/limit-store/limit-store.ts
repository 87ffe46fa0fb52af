/** The kinds of limits: requests (`rpm`) and tokens (`tpm`) per window, however long it is, and requests at the same time. */
export type LimitKind = 'rpm' | 'tpm' | 'concurrency'

/** One limit that a request must pass. */
export interface Limit {
  readonly kind: LimitKind
  /** The name of its level, such as `key` or `account`. */
  readonly level: string
  /** The subject that is limited, such as an account's id. */
  readonly subject: string
  /** The maximum in one window, or at the same time. */
  readonly max: number
  /** The part of it that this request takes: whole requests, tokens or slots. */
  readonly cost: number
  /** The name of the counter, or of the set of slots, in a store. */
  readonly key: string
}

/** All limits that a request must pass. A store admits it as a whole or not at all. */
export interface Demand {
  /** The call's id. It names the call's slots. */
  readonly id: string
  /** The subjects of the request at all levels. The wait of a sender grows if it retries early. */
  readonly sender: string
  /** The length of a window, in milliseconds. */
  readonly windowMs: number
  /** The limits that count within a window. */
  readonly charges: readonly Limit[]
  /** The limits that hold a slot until the call ends. */
  readonly slots: readonly Limit[]
}

/** The state of a window after a verdict. */
export interface Count {
  readonly used: number
  /** Milliseconds until the window ends; its whole length if none is open. */
  readonly resetMs: number
}

/** A store's decision on a demand. */
export interface Verdict {
  /** The limit that refused the demand, the one with the longest wait; undefined: admitted. */
  readonly refusedBy: Limit | undefined
  /** The milliseconds until that limit would admit the demand; 0 for an admitted one. */
  readonly waitMs: number
  /** One for each charge, in their order. */
  readonly counts: readonly Count[]
}

/**
 * Keeps counts and slots. A refused demand changes neither. A window is fixed and begins with its first request.
 *
 * A store that is away throws {@link StoreAway}, or rejects with it. It may have done what it was asked nevertheless.
 */
export interface LimitStore {
  /** Whether the store ends its operations in time by itself. Without it `rateLimit` waits at most 250 ms for each. */
  readonly keepsTime?: boolean
  /**
   * Is called once when a `rateLimit` is made. Defaults to accepting every length.
   *
   * @throws TypeError if the store cannot count in windows of this length.
   */
  checkWindow?(windowMs: number): void
  /** Admits or refuses a demand as a whole. */
  admit(demand: Demand): Verdict | PromiseLike<Verdict>
  /**
   * Returns the verdict on a demand and takes nothing, so that a large body need not be read in vain. Without this method
   * only limits that can never be passed refuse before the body is read.
   */
  peek?(demand: Demand): Verdict | PromiseLike<Verdict>
  /** Takes slots unconditionally, for a call that runs although the store did not answer. */
  hold(demand: Demand): void
  /**
   * Gives the slots of a demand back. Slots that were never taken, or given back before, change nothing. If `admit` did
   * not answer and the demand was not held, the store also gives back what it counted, as soon as it learns of it.
   *
   * @returns a promise for which the last byte of the answer waits, if the slots are not free at once for every process. It
   * must not reject.
   */
  release(demand: Demand): void | Promise<void>
  /** Adds points to a counter whatever its limit is, or takes some away. `tokens: 'total'` needs it. */
  book?(key: string, points: number, windowMs: number): void | Promise<void>
}

/** How far from now early retries can move the end of a wait, in milliseconds. Official SDKs ignore longer waits. */
export const MAX_WAIT_MS = 60_000

/** The longest window, in milliseconds: 31 days. */
export const MAX_WINDOW_MS = 31 * 86_400_000

/** The wait for a slot, in milliseconds. It is the shortest possible one, because a slot may become free any time. */
export const SLOT_WAIT_MS = 1000

/** How long after a refusal a request may still have been on its way, in milliseconds. */
export const GRACE_MS = 1000

/** The time that each early retry adds to the wait, in milliseconds. */
export const PENALTY_MS = 1000

/** Points are not given back in the last milliseconds of a window: they might arrive in the next one. */
export const WINDOW_END_MS = 300
