import type { Logger } from '../../core/call/index.ts'
import type { Ledger, SettlementResult } from '../ledger.ts'
import type { Clock } from '../pool/clock.ts'
import { Deadlines, earliest } from './deadlines.ts'
import { SettlementFaults } from './settlement-faults.ts'
import { StallWatch } from './stall-watch.ts'
import { tellUnsettled } from './tell-unsettled.ts'
import { FAILURES_ALONE, Place, type Settling, WaitingSettlements } from './waiting-settlements.ts'

/** What a {@link SettlementQueue} works with. Times are milliseconds. */
export interface SettlementQueueOptions {
  readonly ledger: Pick<Ledger, 'settle' | 'settlesRecords' | 'gathers'>
  readonly clock: Clock
  readonly logger: Logger
  /** The oldest may wait that long. */
  readonly stallMs: number
  /** Longer than this nobody waits for one. */
  readonly confirmMs: number
  readonly onStallChange: (error?: unknown) => void
}

/** Where only such are left as may be at fault themselves, one new call in this time tries whether that is so. */
const TRIAL_MS = 2000
const NOTHING: readonly Place[] = []

/**
 * Hands settlements to the ledger, in their order: one call at a time, and as soon as it is done the next takes all that
 * waits. A ledger that gathers is also handed what the turn of the event loop brings yet: of many answers that are read
 * in one turn, the first would else go alone, and the others wait for its commit.
 *
 * What fails is handed again until it is settled. One that fails alone while others are settled is told of, set aside
 * and tried again now and then; it hinders nobody.
 */
export class SettlementQueue {
  readonly #options: SettlementQueueOptions
  readonly #unconfirmed: Deadlines<Place>
  readonly #waiting = new WaitingSettlements()
  readonly #faults = new SettlementFaults()
  readonly #stall: StallWatch
  #flying = NOTHING
  #callOff: (() => void) | undefined
  #handing = false
  #gathering = false
  #triedAt = Number.NEGATIVE_INFINITY
  #drained: (() => void)[] = []

  constructor(options: SettlementQueueOptions) {
    this.#options = options
    this.#unconfirmed = new Deadlines(options.clock, options.confirmMs, (place) => place.confirm?.('late'))
    this.#stall = new StallWatch({
      ...options,
      oldest: () => earliest(this.#flying[0]?.since, this.#waiting.oldest),
      onChange: () => options.onStallChange(this.#faults.lastError),
    })
  }

  /** Whether the ledger completes claims and writes log entries. */
  get settlesRecords(): boolean {
    return this.#options.ledger.settlesRecords
  }

  /** Whether the oldest has waited too long. */
  get stalled(): boolean {
    return this.#stall.stalled
  }

  /** How many are not settled yet; those set aside do not count. */
  get size(): number {
    return this.#waiting.size + this.#flying.length
  }

  /** How many are set aside. */
  get setAside(): number {
    return this.#waiting.setAside
  }

  /** Whether nothing waits but what may be at fault itself: a call more would show whether the ledger takes others. */
  get onTrial(): boolean {
    return this.#waiting.areSuspect && !this.#flying.some(({ failures }) => failures < FAILURES_ALONE)
  }

  /** Whether what a new call comes to can be expected to be settled. */
  admits(): boolean {
    if (!this.#stall.stalled) return true
    if (!this.onTrial) return false
    const now = this.#options.clock.now()
    if (now - this.#triedAt < TRIAL_MS) return false
    this.#triedAt = now
    return true
  }

  /** Queues a settlement. Answers at once where the ledger does; `late` when it is not known in time. */
  put(what: Settling): SettlementResult | Promise<SettlementResult | 'late'> {
    const place = new Place(what, this.#options.clock.now())
    this.#waiting.add(place)
    this.#handSoon()
    if (place.result) return place.result
    this.#stall.begin()
    this.#unconfirmed.add(place)
    return new Promise((resolve) => {
      place.confirm = resolve
    })
  }

  /** Takes out what was never handed to the ledger. */
  drop(what: Settling): void {
    const place = this.#waiting.remove(what)
    if (!place) return
    this.#unconfirmed.delete(place)
    place.confirm?.('late')
    this.#concluded()
  }

  /** Resolves when all that is not set aside is settled. */
  drained(): Promise<void> {
    if (this.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#drained.push(resolve))
  }

  /** Hands those set aside to the ledger once more; {@link drained} waits for each to be settled, or to fail again. */
  retryAside(): void {
    this.#waiting.readmit(this.#options.clock.now())
    this.#hand()
  }

  /** Tells the log of all that the ledger has not confirmed, one by one: the process ends. */
  tellUnsettled(): void {
    for (const place of [...this.#flying, ...this.#waiting.all()]) {
      const message = 'a settlement is not confirmed at the end of the process'
      tellUnsettled(this.#options.logger, place, this.#faults.lastError, message)
    }
  }

  #handSoon(): void {
    if (!this.#options.ledger.gathers) {
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
      const now = this.#options.clock.now()
      if (now < this.#faults.resumeAt) {
        this.#handLater(this.#faults.resumeAt - now, true)
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

  /** @param keepsAlive whether the process does not end meanwhile: charges wait that the ledger may yet take. */
  #handLater(inMs: number, keepsAlive: boolean): void {
    this.#callOff?.()
    this.#callOff = this.#options.clock.after(
      inMs,
      () => {
        this.#callOff = undefined
        this.#hand()
      },
      keepsAlive,
    )
  }

  #commit(batch: readonly Place[]): void {
    this.#flying = batch
    try {
      const answer = this.#options.ledger.settle(batch.map(({ what }) => what.settlement()))
      if (!('then' in answer)) {
        this.#succeeded(batch, answer)
        return
      }
      const done = (step: () => void) => {
        step()
        this.#handSoon()
      }
      void answer.then(
        (results) => done(() => this.#succeeded(batch, results)),
        (error: unknown) => done(() => this.#failed(batch, error)),
      )
    } catch (error) {
      this.#failed(batch, error)
    }
  }

  #succeeded(batch: readonly Place[], results: readonly SettlementResult[]): void {
    this.#flying = NOTHING
    this.#faults.settled(batch.length)
    this.#waiting.settled()
    for (const [i, place] of batch.entries()) {
      const result = results[i]
      if (!result) {
        this.#failed([place], new Error('the ledger did not answer every settlement'))
        continue
      }
      place.result = result
      if (place.confirm) this.#unconfirmed.delete(place)
      // Whoever waits is told last: by then all that follows from it has been done.
      place.what.settled(result, place.unanswered > 0)
      place.confirm?.(result)
    }
    this.#concluded()
  }

  #failed(batch: readonly Place[], error: unknown): void {
    this.#flying = NOTHING
    this.#faults.failed(error)
    for (const place of batch) place.unanswered++
    const [alone, other] = batch
    if (other || !alone) {
      // Soon each is alone; until then it is not known whether the ledger is away at all.
      this.#waiting.putBack(batch)
      return
    }
    this.#failedAlone(alone, error)
  }

  #failedAlone(place: Place, error: unknown): void {
    const now = this.#options.clock.now()
    if (!this.#faults.isAtFault(place, now)) {
      this.#waiting.suspect(place, now)
      return
    }
    if (place.what.setAside()) {
      place.failures = 0
      this.#waiting.putFirst(place)
      return
    }
    this.#waiting.keepAside(place, now)
    const message = 'a settlement fails while others are written: it is set aside'
    if (!place.told) tellUnsettled(this.#options.logger, place, error, message)
    place.told = true
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
