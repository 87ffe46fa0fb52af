import type { IdempotencyClaim, Logger } from '../call/index.ts'
import { StoreAway, type StoreGuard } from '../store-guard/index.ts'
import { HeldClaim, type Moment, momentNow } from './held-claim.ts'
import type { IdempotencyRecord, IdempotencyStore } from './idempotency-store.ts'

/** What a {@link ClaimKeeper} works with. Times are milliseconds. */
export interface ClaimKeeperOptions {
  readonly store: IdempotencyStore
  readonly guard: StoreGuard
  readonly logger: Logger
  readonly leaseMs: number
  readonly keepMs: number
}

/** Claims renewed by one operation, so that it stays far within its bound. */
const RENEWED_AT_ONCE = 500
const RETRY_MS = 1000
const PRUNE_MS = 60_000
const PRUNED_AT_ONCE = 500
/** Longest that one round prunes. */
const PRUNING_MS = 1000

/**
 * Makes claims, renews those that are held with one timer for all of them, and sees to the end what the store did not
 * answer: a completion or a release of unknown outcome is asked for again until it is known.
 */
export class ClaimKeeper {
  readonly #store: IdempotencyStore
  readonly #guard: StoreGuard
  readonly #logger: Logger
  readonly #leaseMs: number
  readonly #keepMs: number
  /** Claims that are renewed. */
  readonly #held = new Set<HeldClaim>()
  /** Claims whose completion or release was asked for and not answered. */
  readonly #unanswered = new Set<HeldClaim>()
  #timer: NodeJS.Timeout | undefined
  #dueAt = 0
  #prunedAt = 0

  constructor({ store, guard, logger, leaseMs, keepMs }: ClaimKeeperOptions) {
    this.#store = store
    this.#guard = guard
    this.#logger = logger
    this.#leaseMs = leaseMs
    this.#keepMs = keepMs
  }

  /**
   * Claims a record.
   *
   * @returns the claim, or the record that stands in the way.
   * @throws {StoreAway} when nobody knows; what may have been claimed is given back.
   */
  async claim(claim: IdempotencyClaim, fingerprint: string): Promise<HeldClaim | IdempotencyRecord> {
    await this.#settleFirst(claim.id)
    const askedAt = momentNow()
    const held = new HeldClaim(claim, askedAt)
    const { wall: now } = askedAt
    let asked = false
    try {
      const standing = await this.#guard.run(() => {
        asked = true
        return this.#store.claim({ ...claim, fingerprint, now, leaseUntil: now + this.#leaseMs })
      })
      if (standing) return standing
    } catch (error) {
      if (asked) {
        held.state = 'releasing'
        this.#answerLater(held)
      }
      throw error
    }
    this.#held.add(held)
    this.#wake(this.#renewMs)
    return held
  }

  /**
   * A completion that the store has not confirmed stands before the next claim on its key once its lease may be over:
   * what has run must not run again. Until then the record itself stands in the way.
   *
   * @throws {StoreAway} while the store still does not answer.
   */
  async #settleFirst(id: string): Promise<void> {
    for (const unsettled of this.#unanswered) {
      if (unsettled.id !== id || unsettled.state !== 'settling') continue
      if (unsettled.age < this.#leaseMs * 0.75) continue
      await this.#askToComplete(unsettled)
      this.#unanswered.delete(unsettled)
    }
  }

  /** Whether a call may go on: its key cannot be another's by now. */
  maySend(held: HeldClaim): boolean {
    return held.state === 'completed' || (held.state === 'running' && held.age < this.#leaseMs * 0.75)
  }

  /**
   * Notes that the call has run.
   *
   * @returns false when the claim was lost.
   * @throws {StoreAway} when nobody knows; it is asked for again until that is known.
   */
  async complete(held: HeldClaim): Promise<boolean> {
    this.#held.delete(held)
    held.state = 'settling'
    try {
      await this.#askToComplete(held)
    } catch (error) {
      this.#answerLater(held)
      throw error
    }
    return (held.state as HeldClaim['state']) === 'completed'
  }

  /** Frees the key. Never rejects: what the store does not answer is asked for again, until the lease is over anyway. */
  async release(held: HeldClaim): Promise<void> {
    this.#held.delete(held)
    held.state = 'releasing'
    try {
      await this.#askToRelease(held)
    } catch {
      // The guard has told of the outage.
      this.#answerLater(held)
    }
  }

  get #renewMs(): number {
    return this.#leaseMs / 4
  }

  async #askToComplete(held: HeldClaim): Promise<void> {
    const kept = await this.#guard.run(() => this.#store.complete(held, Date.now() + this.#keepMs))
    if (kept) held.state = 'completed'
    else this.#lose(held)
  }

  async #askToRelease(held: HeldClaim): Promise<void> {
    await this.#guard.run(() => this.#store.release(held))
    held.state = 'released'
  }

  #lose(held: HeldClaim): void {
    held.state = 'lost'
    this.#logger.warn({ requestId: held.owner }, 'idempotency: a claim was lost to a later call')
  }

  #answerLater(held: HeldClaim): void {
    this.#unanswered.add(held)
    this.#wake(Math.min(RETRY_MS, this.#renewMs))
  }

  /** Sees to it that the next round is not later than that. */
  #wake(inMs: number): void {
    const dueAt = performance.now() + inMs
    if (this.#timer) {
      if (this.#dueAt <= dueAt) return
      clearTimeout(this.#timer)
    }
    this.#dueAt = dueAt
    this.#timer = setTimeout(() => void this.#round(), inMs).unref()
  }

  async #round(): Promise<void> {
    let answered = true
    try {
      await this.#renewHeld()
      await this.#settleUnanswered()
      await this.#prune()
    } catch (error) {
      answered = false
      // Of an outage the guard has told.
      if (!(error instanceof StoreAway))
        this.#logger.error({ err: error }, 'idempotency: renewing claims failed')
    }
    this.#timer = undefined
    if (!answered || this.#unanswered.size > 0) this.#wake(Math.min(RETRY_MS, this.#renewMs))
    else if (this.#held.size > 0) this.#wake(this.#renewMs)
  }

  async #renewHeld(): Promise<void> {
    const held = [...this.#held]
    for (let at = 0; at < held.length; at += RENEWED_AT_ONCE) {
      await this.#renew(held.slice(at, at + RENEWED_AT_ONCE))
    }
  }

  async #renew(claims: readonly HeldClaim[]): Promise<void> {
    const askedAt: Moment = momentNow()
    const answers = await this.#guard.run(() => this.#store.renew(claims, askedAt.wall + this.#leaseMs))
    for (const [i, claim] of claims.entries()) {
      // What has ended meanwhile was rightly not renewed.
      if (!this.#held.has(claim)) continue
      const over = claim.state !== 'running' && claim.state !== 'settling'
      if (answers[i] && !over) {
        claim.confirm(askedAt)
        continue
      }
      this.#held.delete(claim)
      if (!over) this.#lose(claim)
    }
  }

  async #settleUnanswered(): Promise<void> {
    for (const held of this.#unanswered) {
      if (held.state === 'settling') await this.#askToComplete(held)
      // A lease that nobody has renewed is over by itself.
      else if (held.age <= this.#leaseMs) await this.#askToRelease(held)
      this.#unanswered.delete(held)
    }
  }

  async #prune(): Promise<void> {
    const now = Date.now()
    if (now - this.#prunedAt < PRUNE_MS) return
    // What is left after a long time away is for the next rounds: renewals do not wait for it.
    const until = performance.now() + PRUNING_MS
    let pruned = PRUNED_AT_ONCE
    while (pruned === PRUNED_AT_ONCE && performance.now() < until) {
      pruned = await this.#guard.run(() => this.#store.prune(now, PRUNED_AT_ONCE))
    }
    if (pruned < PRUNED_AT_ONCE) this.#prunedAt = now
  }
}
