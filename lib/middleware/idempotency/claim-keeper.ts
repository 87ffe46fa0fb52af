import { setTimeout as sleep } from 'node:timers/promises'
import type { IdempotencyClaim, Logger, RunningClaim } from '../../core/call/index.ts'
import type { ClaimRequest, IdempotencyRecord, IdempotencyStore } from '../../core/idempotency/index.ts'
import { BrokenRecord, StoreAway, type StoreGuard } from '../../core/store-guard/index.ts'

/** A moment on both clocks. The monotonic clock stands still while the machine sleeps; the wall clock may be set. */
interface Moment {
  readonly monotonic: number
  readonly wall: number
}

function momentNow(): Moment {
  return { monotonic: performance.now(), wall: Date.now() }
}

/** A claim of this process, with the time of its last confirmed renewal. */
export class HeldClaim implements RunningClaim {
  readonly id: string
  readonly owner: string
  readonly keepMs: number
  state: RunningClaim['state'] = 'running'
  /** The answer for repetitions, until the store has confirmed it. */
  answer: string | undefined
  #confirmed: Moment

  /** @param askedAt when the claim was requested. Its lease begins then or later. */
  constructor({ id, owner }: IdempotencyClaim, keepMs: number, askedAt: Moment) {
    this.id = id
    this.owner = owner
    this.keepMs = keepMs
    this.#confirmed = askedAt
  }

  /** Notes a confirmed renewal. */
  confirm(askedAt: Moment): void {
    this.#confirmed = askedAt
  }

  /** Milliseconds since the last confirmed renewal was asked for, by the clock that shows more. */
  get age(): number {
    const { monotonic, wall } = this.#confirmed
    return Math.max(performance.now() - monotonic, Date.now() - wall)
  }
}

/** Options of a {@link ClaimKeeper}. Times are milliseconds. */
export interface ClaimKeeperOptions {
  readonly store: IdempotencyStore
  readonly guard: StoreGuard
  readonly logger: Logger
  readonly claimLeaseMs: number
  readonly keepRecordsMs: number
}

const RETRY_MS = 1000
/** The largest number of claims renewed by one operation, to stay far within its time limit. */
const RENEW_BATCH_SIZE = 500
/** The largest number of unconfirmed operations that are repeated at a time. */
const RETRY_BATCH_SIZE = 100
const PRUNE_INTERVAL_MS = 60_000
/** Records are removed so long after they expired, because the clock of the process that has one may be behind. */
const PRUNE_SPARE_MS = 3_600_000
const PRUNE_BATCH_SIZE = 500
/** How often `close` checks whether the store has confirmed everything. */
const CLOSING_MS = 20
/** The longest time that one maintenance spends on pruning and on unconfirmed claims, so that renewals do not wait. */
const MAX_STEP_MS = 1000

/**
 * Makes claims and renews those of running calls, with one timer for all of them. Repeats each completion and release until
 * the store has confirmed it, and removes expired records.
 */
export class ClaimKeeper {
  readonly #store: IdempotencyStore
  readonly #guard: StoreGuard
  readonly #logger: Logger
  readonly #claimLeaseMs: number
  readonly #keepRecordsMs: number
  /** The claims of running calls, whose leases are renewed together. */
  readonly #held = new Set<HeldClaim>()
  /** Undone claims that the last renewal has found: what was read of their records before may still be on its way. */
  readonly #undone = new WeakSet<HeldClaim>()
  /** The claims whose completion or release the store has not confirmed. */
  readonly #unconfirmed = new Set<HeldClaim>()
  /** The claims for which the log says that they cannot be settled yet. */
  readonly #logged = new WeakSet<HeldClaim>()
  #prunedAt = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined
  #dueAt = 0
  /** How many claims, completions, releases and maintenances are running. */
  #operations = 0
  #closed = false

  constructor({ store, guard, logger, claimLeaseMs, keepRecordsMs }: ClaimKeeperOptions) {
    this.#store = store
    this.#guard = guard
    this.#logger = logger
    this.#claimLeaseMs = claimLeaseMs
    this.#keepRecordsMs = keepRecordsMs
  }

  /**
   * Claims a record.
   *
   * @returns the claim, or the record of the call that has the key.
   * @throws {StoreAway} if the store does not answer. A claim that it may have made is released.
   */
  async claim(
    claim: Pick<ClaimRequest, 'id' | 'owner' | 'scope'>,
    fingerprint: string,
  ): Promise<HeldClaim | IdempotencyRecord> {
    await this.#settleEarlier(claim.id)
    const first = await this.#claimOnce(claim, fingerprint)
    const left = first instanceof HeldClaim ? undefined : this.#unreleasedClaimOf(first)
    if (!left) return first
    await this.#retry(left)
    return this.#unconfirmed.has(left) ? first : this.#claimOnce(claim, fingerprint)
  }

  /** Returns the claim of a call that is over, if a record is its: the store got it, and has not confirmed its release. */
  #unreleasedClaimOf({ owner }: IdempotencyRecord): HeldClaim | undefined {
    for (const left of this.#unconfirmed) if (left.owner === owner && left.state === 'releasing') return left
    return undefined
  }

  async #claimOnce(
    claim: Pick<ClaimRequest, 'id' | 'owner' | 'scope'>,
    fingerprint: string,
  ): Promise<HeldClaim | IdempotencyRecord> {
    const askedAt = momentNow()
    const held = new HeldClaim(claim, this.#keepRecordsMs, askedAt)
    const { wall: now } = askedAt
    let asked = false
    this.#operations++
    try {
      const existing = await this.#guard.run(() => {
        asked = true
        return this.#store
          .claim({ ...claim, fingerprint, now, leaseUntil: now + this.#claimLeaseMs })
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
      if (unsettled.age < this.#claimLeaseMs * 0.75) continue
      await this.#askAgain(unsettled)
    }
  }

  /** Returns whether a call may go on: no other call can have its key by now. */
  maySend(held: HeldClaim): boolean {
    if (held.state === 'completed') return true
    if (held.state !== 'running') return false
    if (held.age < this.#claimLeaseMs * 0.75) return true
    // If the clock jumped, all claims are as old: those of the other calls are renewed before these need them.
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
      if (this.#operations === 0) await this.#succeeds(this.#retryUnconfirmed(this.#maxStepMs))
      if (isBusy()) await sleep(CLOSING_MS)
    }
    this.#closed = true
    clearTimeout(this.#timer)
    for (const { owner, state } of this.#unconfirmed)
      this.#logger.error({ requestId: owner, state }, 'idempotency: a claim is not settled at the end')
  }

  get #renewMs(): number {
    return this.#claimLeaseMs / 4
  }

  get #maxStepMs(): number {
    return Math.min(MAX_STEP_MS, this.#renewMs / 2)
  }

  async #askToComplete(held: HeldClaim, how: 'insist' | 'retry'): Promise<void> {
    const kept = await this.#guard[how](() =>
      this.#store.complete(held, Date.now() + this.#keepRecordsMs, held.answer).then(booleanIn),
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
    const renewed = await this.#succeeds(this.#renewAll())
    await this.#succeeds(this.#retryUnconfirmed(this.#maxStepMs))
    await this.#succeeds(this.#prune(this.#maxStepMs))
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

  /** @throws {StoreAway} when the store does not answer, or its error about a claim. All others are renewed then. */
  async #renewAll(): Promise<void> {
    const claims = [...this.#held]
    const failures: unknown[] = []
    for (let at = 0; at < claims.length; at += RENEW_BATCH_SIZE) {
      const batch = claims.slice(at, at + RENEW_BATCH_SIZE)
      await this.#renewOrHalve(batch).catch((error: unknown) => failures.push(error))
    }
    if (failures.length > 0) throw failures[0]
  }

  /** Renews claims together and, if that fails, in halves: one that cannot be renewed costs no other its lease. */
  async #renewOrHalve(claims: readonly HeldClaim[]): Promise<void> {
    try {
      await this.#renewTogether(claims)
    } catch (error) {
      if (claims.length === 1 || this.#guard.away) throw error
      const half = Math.ceil(claims.length / 2)
      const renewed = await Promise.allSettled([
        this.#renewOrHalve(claims.slice(0, half)),
        this.#renewOrHalve(claims.slice(half)),
      ])
      for (const each of renewed) if (each.status === 'rejected') throw each.reason
    }
  }

  async #renewTogether(claims: readonly HeldClaim[]): Promise<void> {
    const askedAt = momentNow()
    const answers = await this.#guard.run(() => this.#store.renew(claims, askedAt.wall + this.#claimLeaseMs))
    for (const [i, claim] of claims.entries()) {
      // The store does not renew ended claims, or completed ones whose ledger has not answered yet.
      if (!this.#held.has(claim) || answers[i] === undefined) continue
      const over = claim.state !== 'running' && claim.state !== 'settling'
      if (answers[i] && !over) claim.confirm(askedAt)
      else if (claim.state === 'released' && !this.#undone.delete(claim)) this.#undone.add(claim)
      else if (claim.state !== 'settling') {
        this.#held.delete(claim)
        if (!over) this.#lose(claim)
      }
    }
  }

  /** Repeats each claim's operation by itself, many at a time: an outage may leave hundreds, and a key waits for each. */
  async #retryUnconfirmed(forMs: number): Promise<void> {
    const until = performance.now() + forMs
    let waiting = [...this.#unconfirmed]
    while (waiting.length > 0) {
      // One that is alone finds out whether the store is back.
      const batch = waiting.slice(0, this.#guard.away ? 1 : RETRY_BATCH_SIZE)
      waiting = waiting.slice(batch.length)
      await Promise.all(batch.map((held) => this.#retry(held)))
      if (this.#guard.away || performance.now() > until) return
    }
  }

  /** Repeats the operation of a claim. If it fails again, it goes last next time, so that it delays no other. */
  async #retry(held: HeldClaim): Promise<void> {
    try {
      await this.#askAgain(held)
    } catch (error) {
      this.#unconfirmed.delete(held)
      this.#unconfirmed.add(held)
      if (!this.#guard.away) this.#logUnsettled(held, error)
    }
  }

  #logUnsettled(held: HeldClaim, error: unknown): void {
    if (this.#logged.has(held)) return
    this.#logged.add(held)
    this.#logger.error({ err: error, requestId: held.owner }, 'idempotency: a claim cannot be settled yet')
  }

  /** @throws {StoreAway} when the store does not answer. */
  async #askAgain(held: HeldClaim): Promise<void> {
    if (held.state === 'settling') {
      await this.#askToComplete(held, 'retry')
    } else if (held.age <= this.#claimLeaseMs) {
      // An older claim has expired, because it was not renewed.
      await this.#guard.retry(() => this.#store.release(held))
      held.state = 'released'
    }
    this.#unconfirmed.delete(held)
  }

  /**
   * Removes records that expired an hour ago, once a minute.
   *
   * @param forMs how long it may take. After a long outage the rest is removed by later runs.
   * @throws {StoreAway} when the store does not answer.
   */
  async #prune(forMs: number): Promise<void> {
    const startedAt = performance.now()
    if (startedAt - this.#prunedAt < PRUNE_INTERVAL_MS) return
    const until = startedAt + forMs
    let pruned = PRUNE_BATCH_SIZE
    while (pruned === PRUNE_BATCH_SIZE && performance.now() < until) {
      const expiredBefore = Date.now() - PRUNE_SPARE_MS
      pruned = await this.#guard.retry(() => this.#store.prune(expiredBefore, PRUNE_BATCH_SIZE))
    }
    if (pruned < PRUNE_BATCH_SIZE) this.#prunedAt = startedAt
  }
}

/** @throws {BrokenRecord} if the answer of a store is neither a record nor undefined. */
function recordIn(answer: IdempotencyRecord | undefined): IdempotencyRecord | undefined {
  if (answer === undefined) return undefined
  const { owner, fingerprint, state } = (answer ?? {}) as Partial<IdempotencyRecord>
  const isRecord = typeof owner === 'string' && typeof fingerprint === 'string'
  if (isRecord && (state === 'running' || state === 'completed')) return answer
  throw new BrokenRecord('idempotency: the answer of the store to "claim" is no record')
}

/** @throws {BrokenRecord} if the answer of a store is not whether the claim is held. */
function booleanIn(answer: boolean): boolean {
  if (typeof answer === 'boolean') return answer
  throw new BrokenRecord('idempotency: the answer of the store is neither true nor false')
}
