/** The kinds of limits: requests and tokens per window, and requests at the same time. */
export type LimitKind = 'rpm' | 'tpm' | 'concurrency'

/** One limit that a request must pass. */
export interface Limit {
  readonly kind: LimitKind
  /** The name of its level, such as `key` or `account`. */
  readonly level: string
  /** Who is limited, such as an account's id. */
  readonly subject: string
  /** The limit: so much in one window, or at the same time. */
  readonly max: number
  /** What this request takes of it: whole requests, tokens or slots. */
  readonly cost: number
  /** The name of the counter, or of the set of slots, in a store. */
  readonly key: string
}

/** All limits that a request must pass. A store admits it as a whole or not at all. */
export interface Demand {
  /** The call's id. It names the call's slots. */
  readonly id: string
  /**
   * Who sends the request: its subjects at all levels, so that nobody who shares only some of them is another's sender. Its
   * wait grows when it retries early.
   */
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
  /**
   * For a refused demand, the milliseconds until that limit would admit it. For an admitted one, the remaining wait
   * of its sender after the refusal of a larger demand; 0 if there is none.
   */
  readonly waitMs: number
  /** One for each charge, in their order. */
  readonly counts: readonly Count[]
}

/**
 * Keeps counts and slots. A refused demand changes neither. A window is fixed and begins with its first request. An
 * early retry comes later than {@link GRACE_MS} after a refusal and before the end of the wait that the refusal
 * announced. It adds {@link PENALTY_MS} to the sender's wait, up to {@link MAX_WAIT_MS} from now. The wait belongs to the limit
 * that refused: a demand without that limit does not wait. Each call of the sender that ends during the wait excuses one early
 * retry.
 */
export interface LimitStore {
  /** Whether the store ends its operations in time by itself. Without it `rateLimit` waits at most 250 ms for each. */
  readonly keepsTime?: boolean
  /**
   * Admits or refuses a demand as a whole. A store that need not wait returns the verdict itself.
   *
   * @throws StoreAway (or rejects with it) if the store does not answer. It may have admitted the demand
   * nevertheless, so the caller calls {@link hold} if the call runs, and {@link release} in any case.
   */
  admit(demand: Demand): Verdict | PromiseLike<Verdict>
  /** Takes slots unconditionally, for a call that runs although the store did not answer. */
  hold(demand: Demand): void
  /**
   * Gives the slots of a demand back. Slots that were never taken, or given back before, change nothing. If the demand was
   * neither admitted in time nor held, the store undoes an admission that it learns of later.
   *
   * @returns a promise for which the last byte of the answer waits, if the slots are not free at once for every process. It
   * must not reject.
   */
  release(demand: Demand): void | Promise<void>
  /**
   * Notes that an admitted call of a sender ended. During a wait of the sender this excuses its next early retry, since
   * the caller could not know of the wait. A store without penalties needs no such method.
   */
  ended?(sender: string): void
}

/**
 * How far from now early retries can move the end of a wait, in milliseconds. Official SDKs ignore longer waits. A longer
 * window is told truly: whoever retries sooner is refused in any case.
 */
export const MAX_WAIT_MS = 60_000

/** The longest window, in milliseconds: 31 days. */
export const MAX_WINDOW_MS = 31 * 86_400_000

/** The wait for a slot, in milliseconds. It is the shortest possible one, because a slot may become free any time. */
export const SLOT_WAIT_MS = 1000

/** How long after a refusal a request may still have been on its way, in milliseconds. */
export const GRACE_MS = 1000

/**
 * The shortest time between a refusal and the end of a call that excuses an early retry, in milliseconds. After a
 * call that ends sooner, the caller's next request falls within {@link GRACE_MS}.
 */
export const PARDON_MS = 500

/** What each early retry adds to the wait, in milliseconds. */
export const PENALTY_MS = 1000
