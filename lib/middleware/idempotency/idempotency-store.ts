import type { IdempotencyClaim } from '../../core/call/index.ts'

/**
 * When the lease of a pinned claim ends: never by itself. Whoever pins one, because what it runs for outlives the call,
 * completes or frees it later; its call's renewals and releases change nothing about it.
 */
export const PINNED_UNTIL = Date.UTC(9999, 0)

/** What a key has come to: somebody runs it, or it has run. */
export interface IdempotencyRecord {
  /** Request id of the call that holds it, or that ran. */
  readonly owner: string
  /** Fingerprint of that call's content. */
  readonly fingerprint: string
  readonly state: 'running' | 'completed'
  /** While running: when its lease ends. Completed: when it is forgotten. Milliseconds since the epoch. */
  readonly expiresAt: number
}

/** A claim as it is asked for. Times are milliseconds since the epoch. */
export interface ClaimRequest extends IdempotencyClaim {
  readonly fingerprint: string
  readonly now: number
  readonly leaseUntil: number
}

/**
 * Where the records of Idempotency-Keys are kept. Each operation is atomic, in one process and across many. A record's
 * `owner` is its generation: every call has an id of its own, so that whoever was taken over is told apart from whoever
 * took over, and nothing that an earlier owner does late changes anything.
 *
 * All operations may be repeated: the second time changes nothing and answers the same.
 */
export interface IdempotencyStore {
  /**
   * Takes the record where there is none, or an expired one.
   *
   * @returns undefined when it is taken, else the record that stands in the way.
   */
  claim(request: ClaimRequest): Promise<IdempotencyRecord | undefined>

  /**
   * Prolongs leases, expired ones too as long as nobody took them over.
   *
   * @returns for each claim, in their order, whether it is still held.
   */
  renew(claims: readonly IdempotencyClaim[], leaseUntil: number): Promise<readonly boolean[]>

  /**
   * Notes that the call has run, and keeps that until `keepUntil`.
   *
   * @returns false when the claim was lost; nothing is changed then.
   */
  complete(claim: IdempotencyClaim, keepUntil: number): Promise<boolean>

  /** Frees the key of a claim that is still held and not completed; a lost one is left alone. */
  release(claim: IdempotencyClaim): Promise<void>

  /**
   * Forgets records that have expired, at most `limit`. A store that does so by itself answers 0.
   *
   * @returns how many were forgotten.
   */
  prune(now: number, limit: number): Promise<number>
}
