import { setTimeout as sleep } from 'node:timers/promises'
import type { IdempotencyClaim, Logger } from '../../core/call/index.ts'
import { StoreAway, type StoreGuard } from '../../core/store-guard/index.ts'
import { HeldClaim, type Moment, momentNow } from './held-claim.ts'
import type { IdempotencyRecord, IdempotencyStore } from './idempotency-store.ts'
import { RecordPruner } from './record-pruner.ts'
import { UnansweredClaims } from './unanswered-claims.ts'

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
/** How often it is looked, at the end, whether all is answered. */
const CLOSING_MS = 20
/** Longest that one round prunes, and that it asks for what was not answered: renewals do not wait for either. */
const AT_A_STRETCH_MS = 1000

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
  readonly #unanswered: UnansweredClaims
  readonly #pruner: RecordPruner
  #timer: NodeJS.Timeout | undefined
  #dueAt = 0
  /** Claims, completions and releases that somebody waits for, and the round that is under way. */
  #asked = 0
  #closed = false

  constructor({ store, guard, logger, leaseMs, keepMs }: ClaimKeeperOptions) {
    this.#store = store
    this.#guard = guard
    this.#logger = logger
    this.#leaseMs = leaseMs
    this.#keepMs = keepMs
    this.#pruner = new RecordPruner(store, guard)
    this.#unanswered = new UnansweredClaims({ guard, logger, ask: (held) => this.#askAgain(held) })
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
    const held = new HeldClaim(claim, this.#keepMs, askedAt)
    const { wall: now } = askedAt
    let asked = false
    this.#asked++
    try {
      const standing = await this.#guard.run(() => {
        asked = true
        return this.#store.claim({ ...claim, fingerprint, now, leaseUntil: now + this.#leaseMs })
      })
      if (standing) return this.#isSettling(standing) ? { ...standing, state: 'running' } : standing
    } catch (error) {
      if (asked) {
        held.state = 'releasing'
        this.#answerLater(held)
      }
      throw error
    } finally {
      this.#asked--
    }
    this.#held.add(held)
    this.#wake(this.#renewMs)
    return held
  }

  /** Until a ledger has answered, its charge may yet be undone, and the record with it: that call runs still. */
  #isSettling({ owner }: IdempotencyRecord): boolean {
    for (const held of this.#held) if (held.owner === owner) return held.state === 'settling'
    return false
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
      await this.#unanswered.ask(unsettled)
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
    this.#asked++
    try {
      // Asked even while the store seems to be away: an answer that was made hangs on it.
      await this.#askToComplete(held, 'insist')
    } catch (error) {
      this.#answerLater(held)
      throw error
    } finally {
      this.#asked--
    }
    return (held.state as HeldClaim['state']) === 'completed'
  }

  /** Frees the key. Never rejects: what the store does not answer is asked for again, until the lease is over anyway. */
  async release(held: HeldClaim): Promise<void> {
    this.#held.delete(held)
    held.state = 'releasing'
    this.#asked++
    try {
      await this.#guard.run(() => this.#store.release(held))
      held.state = 'released'
    } catch {
      // The guard has told of the outage.
      this.#answerLater(held)
    } finally {
      this.#asked--
    }
  }

  /**
   * At the end of the process: waits until what was asked of the store is answered, asks again for what was not, and
   * tells the log of what is not settled by then. Claims of calls that still run end with their leases.
   */
  async close(withinMs: number): Promise<void> {
    const until = performance.now() + withinMs
    const isBusy = (): boolean => this.#asked > 0 || this.#unanswered.size > 0
    while (isBusy() && performance.now() < until) {
      if (this.#asked === 0) await this.#answered(this.#unanswered.askAll(this.#stretchMs))
      if (isBusy()) await sleep(CLOSING_MS)
    }
    this.#closed = true
    clearTimeout(this.#timer)
    for (const { owner, state } of this.#unanswered)
      this.#logger.error({ requestId: owner, state }, 'idempotency: a claim is not settled at the end')
  }

  get #renewMs(): number {
    return this.#leaseMs / 4
  }

  get #stretchMs(): number {
    return Math.min(AT_A_STRETCH_MS, this.#renewMs / 2)
  }

  async #askToComplete(held: HeldClaim, how: 'insist' | 'retry'): Promise<void> {
    const kept = await this.#guard[how](() => this.#store.complete(held, Date.now() + this.#keepMs))
    if (kept) held.state = 'completed'
    else this.#lose(held)
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
    if (this.#closed) return
    const dueAt = performance.now() + inMs
    if (this.#timer) {
      if (this.#dueAt <= dueAt) return
      clearTimeout(this.#timer)
    }
    this.#dueAt = dueAt
    this.#timer = setTimeout(() => void this.#round(), inMs).unref()
  }

  async #round(): Promise<void> {
    this.#asked++
    const renewed = await this.#answered(this.#renewHeld())
    await this.#answered(this.#unanswered.askAll(this.#stretchMs))
    await this.#answered(this.#pruner.prune(this.#stretchMs))
    this.#asked--
    this.#timer = undefined
    if (!renewed || this.#unanswered.size > 0) this.#wake(Math.min(RETRY_MS, this.#renewMs))
    else if (this.#held.size > 0) this.#wake(this.#renewMs)
  }

  async #answered(step: Promise<void>): Promise<boolean> {
    try {
      await step
      return true
    } catch (error) {
      // Of an outage the guard has told.
      if (!(error instanceof StoreAway && this.#guard.away))
        this.#logger.error({ err: error }, 'idempotency: a round failed')
      return false
    }
  }

  async #renewHeld(): Promise<void> {
    const held = [...this.#held]
    for (let at = 0; at < held.length; at += RENEWED_AT_ONCE)
      await this.#renew(held.slice(at, at + RENEWED_AT_ONCE))
  }

  async #renew(claims: readonly HeldClaim[]): Promise<void> {
    const askedAt: Moment = momentNow()
    const answers = await this.#guard.run(() => this.#store.renew(claims, askedAt.wall + this.#leaseMs))
    for (const [i, claim] of claims.entries()) {
      // What has ended meanwhile was rightly not renewed, nor what is completed: of that the ledger has yet to tell.
      if (!this.#held.has(claim)) continue
      const over = claim.state !== 'running' && claim.state !== 'settling'
      if (answers[i] && !over) claim.confirm(askedAt)
      else if (claim.state !== 'settling') {
        this.#held.delete(claim)
        if (!over) this.#lose(claim)
      }
    }
  }

  /** @throws {StoreAway} when the store still does not answer. */
  async #askAgain(unanswered: HeldClaim): Promise<void> {
    if (unanswered.state === 'settling') {
      await this.#askToComplete(unanswered, 'retry')
    } else if (unanswered.age <= this.#leaseMs) {
      // Else it is over by itself, as nobody has renewed it.
      await this.#guard.retry(() => this.#store.release(unanswered))
      unanswered.state = 'released'
    }
  }
}
