import { setTimeout as sleep } from 'node:timers/promises'
import type { IdempotencyClaim, Logger } from '../../core/call/index.ts'
import { StoreAway, type StoreGuard } from '../../core/store-guard/index.ts'
import { HeldClaim, momentNow } from './held-claim.ts'
import { HeldClaims } from './held-claims.ts'
import type { IdempotencyRecord, IdempotencyStore } from './idempotency-store.ts'
import { RecordPruner } from './record-pruner.ts'
import { booleanIn, recordIn } from './store-answers.ts'
import { UnconfirmedClaims } from './unconfirmed-claims.ts'

/** Options of a {@link ClaimKeeper}. Times are milliseconds. */
export interface ClaimKeeperOptions {
  readonly store: IdempotencyStore
  readonly guard: StoreGuard
  readonly logger: Logger
  readonly leaseMs: number
  readonly keepMs: number
}

const RETRY_MS = 1000
/** How often `close` checks whether the store has confirmed everything. */
const CLOSING_MS = 20
/** The longest time that one maintenance spends on pruning and on unconfirmed claims, so that renewals do not wait. */
const MAX_STEP_MS = 1000

/**
 * Makes claims and renews the held ones, with one timer for all of them. Repeats each completion and release until the store
 * has confirmed it.
 */
export class ClaimKeeper {
  readonly #store: IdempotencyStore
  readonly #guard: StoreGuard
  readonly #logger: Logger
  readonly #leaseMs: number
  readonly #keepMs: number
  readonly #held: HeldClaims
  readonly #unconfirmed: UnconfirmedClaims
  readonly #pruner: RecordPruner
  #timer: NodeJS.Timeout | undefined
  #dueAt = 0
  /** How many claims, completions, releases and maintenances are running. */
  #operations = 0
  #closed = false

  constructor({ store, guard, logger, leaseMs, keepMs }: ClaimKeeperOptions) {
    this.#store = store
    this.#guard = guard
    this.#logger = logger
    this.#leaseMs = leaseMs
    this.#keepMs = keepMs
    this.#held = new HeldClaims({ store, guard, leaseMs, onLost: (held) => this.#lose(held) })
    this.#pruner = new RecordPruner(store, guard)
    this.#unconfirmed = new UnconfirmedClaims({ guard, logger, ask: (held) => this.#askAgain(held) })
  }

  /**
   * Claims a record.
   *
   * @returns the claim, or the record of the call that has the key.
   * @throws {StoreAway} if the store does not answer. A claim that it may have made is released.
   */
  async claim(claim: IdempotencyClaim, fingerprint: string): Promise<HeldClaim | IdempotencyRecord> {
    await this.#settleEarlier(claim.id)
    const askedAt = momentNow()
    const held = new HeldClaim(claim, this.#keepMs, askedAt)
    const { wall: now } = askedAt
    let asked = false
    this.#operations++
    try {
      const existing = await this.#guard.run(() => {
        asked = true
        return this.#store
          .claim({ ...claim, fingerprint, now, leaseUntil: now + this.#leaseMs })
          .then(recordIn)
      })
      if (existing) return this.#mayBeUndone(existing) ? { ...existing, state: 'running' } : existing
    } catch (error) {
      if (asked) {
        held.state = 'releasing'
        this.#confirmLater(held)
      }
      throw error
    } finally {
      this.#operations--
    }
    this.#held.add(held)
    this.#wake(this.#renewMs)
    return held
  }

  /**
   * Returns whether a record belongs to a call whose ledger has not answered, so that the charge and the record may be
   * undone, or to one that was undone after the record was read.
   */
  #mayBeUndone({ owner }: IdempotencyRecord): boolean {
    for (const held of this.#held)
      if (held.owner === owner) return held.state === 'settling' || held.state === 'released'
    return false
  }

  /**
   * Completes an earlier call of the same key that the store has not confirmed, once its lease may have expired: a
   * call that has run must not run again. Until then its record refuses the claim.
   *
   * @throws {StoreAway} while the store does not answer.
   */
  async #settleEarlier(id: string): Promise<void> {
    for (const unsettled of this.#unconfirmed) {
      if (unsettled.id !== id || unsettled.state !== 'settling') continue
      if (unsettled.age < this.#leaseMs * 0.75) continue
      await this.#unconfirmed.ask(unsettled)
    }
  }

  /** Returns whether a call may go on: no other call can have its key by now. */
  maySend(held: HeldClaim): boolean {
    if (held.state === 'completed') return true
    if (held.state !== 'running') return false
    if (held.age < this.#leaseMs * 0.75) return true
    // If the clock has leapt, all claims are as old: those of the other calls are renewed before these need them.
    this.#wake(0)
    return false
  }

  /**
   * Notes that the call has run.
   *
   * @returns false when the claim was lost.
   * @throws {StoreAway} when the store does not answer. The completion is repeated until it does.
   */
  async complete(held: HeldClaim): Promise<boolean> {
    this.#held.delete(held)
    held.state = 'settling'
    this.#operations++
    try {
      // Tries even while the store seems to be away, because a finished answer waits for it.
      await this.#askToComplete(held, 'insist')
    } catch (error) {
      this.#confirmLater(held)
      throw error
    } finally {
      this.#operations--
    }
    return (held.state as HeldClaim['state']) === 'completed'
  }

  /** Frees the key. Never rejects: an unanswered release is repeated until the lease is over. */
  async release(held: HeldClaim): Promise<void> {
    this.#held.delete(held)
    held.state = 'releasing'
    this.#operations++
    try {
      await this.#guard.run(() => this.#store.release(held))
      held.state = 'released'
    } catch {
      // The guard has logged the outage.
      this.#confirmLater(held)
    } finally {
      this.#operations--
    }
  }

  /**
   * Waits, at the end of the process, until the store has confirmed everything, and repeats what it has not. Logs the
   * claims that are not settled by then. Claims of running calls expire with their leases.
   */
  async close(withinMs: number): Promise<void> {
    const until = performance.now() + withinMs
    const isBusy = (): boolean => this.#operations > 0 || this.#unconfirmed.size > 0
    while (isBusy() && performance.now() < until) {
      if (this.#operations === 0) await this.#succeeds(this.#unconfirmed.askAll(this.#maxStepMs))
      if (isBusy()) await sleep(CLOSING_MS)
    }
    this.#closed = true
    clearTimeout(this.#timer)
    for (const { owner, state } of this.#unconfirmed)
      this.#logger.error({ requestId: owner, state }, 'idempotency: a claim is not settled at the end')
  }

  get #renewMs(): number {
    return this.#leaseMs / 4
  }

  get #maxStepMs(): number {
    return Math.min(MAX_STEP_MS, this.#renewMs / 2)
  }

  async #askToComplete(held: HeldClaim, how: 'insist' | 'retry'): Promise<void> {
    const kept = await this.#guard[how](() =>
      this.#store.complete(held, Date.now() + this.#keepMs, held.answer).then(booleanIn),
    )
    held.answer = undefined
    if (kept) held.state = 'completed'
    else this.#lose(held)
  }

  #lose(held: HeldClaim): void {
    held.state = 'lost'
    this.#logger.warn({ requestId: held.owner }, 'idempotency: a claim was lost to a later call')
  }

  #confirmLater(held: HeldClaim): void {
    this.#unconfirmed.add(held)
    this.#wake(Math.min(RETRY_MS, this.#renewMs))
  }

  /** Sets the timer to the next maintenance, unless that is due sooner. */
  #wake(inMs: number): void {
    if (this.#closed) return
    const dueAt = performance.now() + inMs
    if (this.#timer) {
      if (this.#dueAt <= dueAt) return
      clearTimeout(this.#timer)
    }
    this.#dueAt = dueAt
    this.#timer = setTimeout(() => void this.#maintain(), inMs).unref()
  }

  /** Renews claims, asks for unconfirmed ones, and prunes. */
  async #maintain(): Promise<void> {
    this.#operations++
    const renewed = await this.#succeeds(this.#held.renew())
    await this.#succeeds(this.#unconfirmed.askAll(this.#maxStepMs))
    await this.#succeeds(this.#pruner.prune(this.#maxStepMs))
    this.#operations--
    this.#timer = undefined
    if (!renewed || this.#unconfirmed.size > 0) this.#wake(Math.min(RETRY_MS, this.#renewMs))
    else if (this.#held.size > 0) this.#wake(this.#renewMs)
  }

  async #succeeds(step: Promise<void>): Promise<boolean> {
    try {
      await step
      return true
    } catch (error) {
      // The guard has logged an outage.
      if (!(error instanceof StoreAway && this.#guard.away))
        this.#logger.error({ err: error }, 'idempotency: maintenance failed')
      return false
    }
  }

  /** @throws {StoreAway} when the store does not answer. */
  async #askAgain(held: HeldClaim): Promise<void> {
    if (held.state === 'settling') {
      await this.#askToComplete(held, 'retry')
    } else if (held.age <= this.#leaseMs) {
      // An older claim has expired, because nobody renewed it.
      await this.#guard.retry(() => this.#store.release(held))
      held.state = 'released'
    }
  }
}
