import type { Ledger, SettlementResult } from '../ledger.ts'
import type { Clock } from '../pool/clock.ts'
import type { LedgerHealth } from '../pool/ledger-health.ts'
import type { Charge, SettleOutcome } from './charge.ts'
import { Deadlines, earliest } from './deadlines.ts'
import { StallWatch } from './stall-watch.ts'
import { WaitingCharges } from './waiting-charges.ts'

/** The parts that {@link SettlementQueue} works with. Times are milliseconds. */
export interface SettlementQueueDeps {
  readonly ledger: Pick<Ledger, 'settle' | 'settlesRecords' | 'gathers'>
  readonly clock: Clock
  readonly health: LedgerHealth
  /** How long the oldest charge may wait. */
  readonly stallMs: number
  /** How long a call waits for its charge. */
  readonly confirmMs: number
}

/** While only suspect charges are left, one new call per this time tests whether others are written. */
const TRIAL_MS = 2000
const NOTHING: readonly Charge[] = []

/**
 * Hands charges and voids to the ledger in their order, one operation at a time. When it has ended, the next one takes
 * all that wait. A ledger that gathers also gets what the current turn of the event loop adds: of many answers that are
 * read in one turn, the first would otherwise go alone, and the others would wait for its commit.
 *
 * A charge that fails is handed over again until it is settled. One that fails alone while others are settled is logged
 * and set aside, and tried again now and then, so that it does not block others.
 */
export class SettlementQueue {
  /** Whether the ledger completes claims and writes log entries. */
  readonly settlesRecords: boolean
  readonly #deps: SettlementQueueDeps
  readonly #unconfirmed: Deadlines<Charge>
  readonly #waiting = new WaitingCharges()
  readonly #stall: StallWatch
  #flying = NOTHING
  #callOff: (() => void) | undefined
  #handing = false
  #gathering = false
  #triedAt = Number.NEGATIVE_INFINITY
  #drained: (() => void)[] = []

  constructor(deps: SettlementQueueDeps) {
    this.#deps = deps
    this.settlesRecords = deps.ledger.settlesRecords
    this.#unconfirmed = new Deadlines(deps.clock, deps.confirmMs, (charge) => charge.confirm?.('late'))
    this.#stall = new StallWatch({
      clock: deps.clock,
      stallMs: deps.stallMs,
      oldest: () => earliest(this.#flying[0]?.since, this.#waiting.oldest),
      onChange: (stalled) => deps.health.stall(stalled, this.#waiting.lastError),
    })
  }

  /** Whether the oldest charge has waited for too long. */
  get stalled(): boolean {
    return this.#stall.stalled
  }

  /** The number of charges that are not settled, without those set aside. */
  get size(): number {
    return this.#waiting.size + this.#flying.length
  }

  /** The number of charges that are set aside. */
  get setAside(): number {
    return this.#waiting.setAside
  }

  /** Whether only suspect charges wait, so that another call would show whether others are written. */
  get onTrial(): boolean {
    return this.#waiting.areSuspect(this.#flying)
  }

  /** Whether the charge of a new call can be expected to be settled. */
  admits(): boolean {
    if (!this.#stall.stalled) return true
    if (!this.onTrial) return false
    const now = this.#deps.clock.now()
    if (now - this.#triedAt < TRIAL_MS) return false
    this.#triedAt = now
    return true
  }

  /** Queues a charge or void. Returns at once if the ledger does; the result is `unconfirmed` if it is not known in time. */
  put(charge: Charge): SettleOutcome | Promise<SettleOutcome> {
    const now = this.#deps.clock.now()
    charge.enter(now)
    const isFree = !this.#handing && this.#flying.length === 0 && this.#waiting.size === 0
    if (isFree && !this.#deps.ledger.gathers && now >= this.#waiting.resumeAt) {
      this.#handing = true
      this.#commit([charge])
      this.#handing = false
      if (this.#waiting.size > 0) this.#hand()
    } else {
      this.#waiting.add(charge)
      this.#handSoon()
    }
    return charge.result ? charge.outcomeOf(charge.result) : this.#await(charge)
  }

  #await(charge: Charge): Promise<SettleOutcome> {
    this.#stall.begin()
    this.#unconfirmed.add(charge)
    const confirmed = new Promise<SettlementResult | 'late'>((resolve) => {
      // Not a literal: V8 would allocate that as an old object, which keeps the whole call alive until a full collection.
      charge.confirm = resolve
    })
    return confirmed.then((result) => charge.outcomeOf(result))
  }

  /** Removes a charge that was never handed to the ledger. */
  drop(charge: Charge): void {
    if (!this.#waiting.remove(charge)) return
    this.#unconfirmed.delete(charge)
    charge.confirm?.('late')
    this.#concluded()
  }

  /** Resolves when all charges are settled that are not set aside. */
  drained(): Promise<void> {
    if (this.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#drained.push(resolve))
  }

  /** Hands the charges that were set aside over once more. {@link drained} waits for the results. */
  retryAside(): void {
    this.#waiting.readmit(this.#deps.clock.now())
    this.#hand()
  }

  /** Logs each charge that the ledger has not confirmed, because the process ends. */
  logUnsettled(): void {
    for (const charge of [...this.#flying, ...this.#waiting.all()]) {
      charge.logUnsettled(this.#waiting.lastError, 'a settlement is not confirmed at the end of the process')
    }
  }

  #handSoon(): void {
    if (!this.#deps.ledger.gathers) {
      this.#hand()
    } else if (!this.#gathering && this.#flying.length === 0) {
      this.#gathering = true
      setImmediate(SettlementQueue.#handGathered, this)
    }
  }

  static #handGathered(queue: SettlementQueue): void {
    queue.#gathering = false
    queue.#hand()
  }

  #hand(): void {
    if (this.#handing || this.#flying.length > 0) return
    this.#handing = true
    while (this.#flying.length === 0) {
      const now = this.#deps.clock.now()
      if (now < this.#waiting.resumeAt) {
        this.#handLater(this.#waiting.resumeAt - now, true)
        break
      }
      const batch = this.#waiting.take(now)
      if (batch.length === 0) {
        const due = this.#waiting.dueAt
        if (due !== undefined) this.#handLater(due - now, this.#waiting.size > 0)
        break
      }
      this.#commit(batch)
    }
    this.#handing = false
  }

  /** @param keepsAlive whether the timer keeps the process alive, for charges that the ledger may still take. */
  #handLater(inMs: number, keepsAlive: boolean): void {
    this.#callOff?.()
    this.#callOff = this.#deps.clock.after(
      inMs,
      () => {
        this.#callOff = undefined
        this.#hand()
      },
      keepsAlive,
    )
  }

  #commit(batch: readonly Charge[]): void {
    this.#flying = batch
    try {
      for (const charge of batch) charge.hand()
      const answer = this.#deps.ledger.settle(batch)
      if ('then' in answer) this.#concludeLater(batch, answer)
      else this.#succeeded(batch, answer)
    } catch (error) {
      this.#failed(batch, error)
    }
  }

  #concludeLater(batch: readonly Charge[], answer: Promise<readonly SettlementResult[]>): void {
    const done = (step: () => void) => {
      step()
      this.#handSoon()
    }
    void answer.then(
      (results) => done(() => this.#succeeded(batch, results)),
      (error: unknown) => done(() => this.#failed(batch, error)),
    )
  }

  #succeeded(batch: readonly Charge[], results: readonly SettlementResult[]): void {
    this.#flying = NOTHING
    this.#waiting.settled(batch.length)
    let i = 0
    for (const charge of batch) {
      const result = results[i++]
      if (!result) {
        this.#failed([charge], new Error('the ledger did not answer every settlement'))
        continue
      }
      charge.result = result
      const { confirm } = charge
      if (confirm) this.#unconfirmed.delete(charge)
      // The waiting call is told last, after everything that follows from the result.
      charge.settled(result, charge.unanswered > 0)
      confirm?.(result)
    }
    if (this.#stall.stalled || this.#drained.length > 0) this.#concluded()
  }

  #failed(batch: readonly Charge[], error: unknown): void {
    this.#flying = NOTHING
    this.#waiting.lastError = error
    for (const charge of batch) charge.unanswered++
    const [alone, other] = batch
    if (alone && !other) this.#failedAlone(alone, error)
    else this.#waiting.failedTogether(batch)
  }

  #failedAlone(charge: Charge, error: unknown): void {
    const now = this.#deps.clock.now()
    if (!this.#waiting.failedAlone(charge, now)) return
    if (charge.setAside()) {
      charge.failures = 0
      this.#waiting.putFirst(charge)
      return
    }
    this.#waiting.keepAside(charge, now)
    if (!charge.isLogged) {
      charge.logUnsettled(error, 'a settlement fails while others are written: it is set aside')
    }
    charge.isLogged = true
    this.#concluded()
  }

  #concluded(): void {
    this.#stall.passed()
    if (this.size > 0 || this.#drained.length === 0) return
    const drained = this.#drained
    this.#drained = []
    for (const resolve of drained) resolve()
  }
}
