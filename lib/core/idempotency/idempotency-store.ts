import type { IdempotencyClaim } from '../call/index.ts'

/**
 * The end of a pinned claim's lease, which never expires by itself. A claim is pinned when its work outlives the
 * call; the component that pins it completes or frees it later. Renewals and releases of its call do not change it.
 */
export const PINNED_UNTIL = Date.UTC(9999, 0)

/** The record of a key: a call runs under it, or has run. */
export interface IdempotencyRecord {
  /** Request id of the call that holds it, or that ran. */
  readonly owner: string
  /** Fingerprint of that call's content. */
  readonly fingerprint: string
  readonly state: 'running' | 'completed'
  /** When the lease of a running record, or the retention of a completed one, ends: milliseconds since the epoch. */
  readonly expiresAt: number
  /** The answer that {@link IdempotencyStore.complete} was given. */
  readonly answer?: string
}

/** The arguments of a claim. Times are milliseconds since the epoch. */
export interface ClaimRequest extends IdempotencyClaim {
  /** The scope of the key, such as its account: a bounded store drops the records of the scope that has the most. Defaults to the empty one. */
  readonly scope?: string
  readonly fingerprint: string
  readonly now: number
  readonly leaseUntil: number
}

/**
 * Keeps the records of Idempotency-Keys. Each operation is atomic, in one process and across many. A record's `owner`
 * is its generation: every call has its own id, so a late operation of an earlier owner does not change the record of
 * a later one.
 *
 * All operations may be repeated: the second time changes nothing and returns the same.
 */
export interface IdempotencyStore {
  /**
   * Makes a record unless an unexpired one exists.
   *
   * @returns undefined if the claim was made, or else the existing record.
   */
  claim(request: ClaimRequest): Promise<IdempotencyRecord | undefined>

  /**
   * Renews leases, including expired ones that no other call has taken over.
   *
   * @returns for each claim, in their order, whether its owner still holds it; undefined if it does, and could not be renewed
   *   now.
   */
  renew(claims: readonly IdempotencyClaim[], leaseUntil: number): Promise<readonly (boolean | undefined)[]>

  /**
   * Notes that the call has run, and keeps the record until `keepUntil`.
   *
   * @param answer the answer to give to repetitions, which {@link claim} returns with the record.
   * @returns false when the claim was lost. Then it changes nothing.
   */
  complete(claim: IdempotencyClaim, keepUntil: number, answer?: string): Promise<boolean>

  /** Frees the key of a claim that its owner still holds and has not completed. Does nothing for a lost claim. */
  release(claim: IdempotencyClaim): Promise<void>

  /**
   * Removes expired records, at most `limit`. A store that does so by itself returns 0.
   *
   * @returns how many it removed.
   */
  prune(now: number, limit: number): Promise<number>
}

/**
 * Keeps the answers of calls with an Idempotency-Key apart from their entries in the call log, in parts. An answer is written
 * before the entry that points at it.
 */
export interface AnswerStore {
  /** The size of a part in bytes: as much as may be written at a time without a delay for anything else. */
  readonly partBytes: number
  /** Writes one part, by itself. Repeating it changes nothing. */
  write(requestId: string, part: number, bytes: Uint8Array): Promise<void>
  /** Deletes an answer that no entry points at. */
  drop(requestId: string): Promise<void>
}
