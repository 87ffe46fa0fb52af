import type { Ledger, SettlementResult } from '../ledger.ts'
import type { Clock } from '../pool/clock.ts'
import type { Charge } from './charge.ts'
import { earliest } from './deadlines.ts'
import { type Progress, WaitingCharges } from './waiting-charges.ts'

/** The parts that {@link SettlementLane} works with. */
export interface SettlementLaneDeps {
  readonly ledger: Pick<Ledger, 'settle' | 'gathers' | 'settlesAtOnce'>
  /** Ends the wait for an answer of the ledger that does not come in time, by an error. */
  readonly timed: <T>(answer: Promise<T>) => Promise<T>
  readonly clock: Clock
  /** Returns how far away the ledger is, in milliseconds. */
  readonly distanceMs: () => number
  readonly progress: Progress
  /** Whether an operation may begin now. If not, {@link SettlementLane.hand} is called when one may. */
  readonly mayHand: (lane: SettlementLane) => boolean
  /** Runs after each operation. */
  readonly onHanded: () => void
  /** Takes an answer of the ledger. */
  readonly onResult: (charge: Charge, result: SettlementResult) => void
  /** Takes a failure of several charges. Returns those that go again here; undefined if it is not known which are at fault. */
  readonly onFailed: (batch: readonly Charge[], error: unknown) => readonly Charge[] | undefined
  /** Takes a charge that fails while others are written. */
  readonly onAtFault: (charge: Charge, error: unknown) => void
  /** Takes an answer to what was left to others by {@link SettlementLane.leave}. */
  readonly onLeft: (charge: Charge, result: SettlementResult) => void
}

const RESULTS: ReadonlySet<SettlementResult> = new Set(['written', 'known', 'fenced'])
/** A shorter time between operations is not worth it: a near ledger has less to do with fewer, larger ones. */
const LEAST_SPREAD_MS = 10
const LEAST_PAUSE_MS = 1

/** An operation that the ledger has not answered, and when it began. */
interface InFlight {
  readonly batch: readonly Charge[]
  readonly since: number
}

/**
 * Hands charges and voids to the ledger in their order, one operation at a time. When it has ended, the next one takes
 * all that wait. A ledger that gathers also gets what the current turn of the event loop adds: of many answers that are
 * read in one turn, the first would otherwise go alone, and the others would wait for its commit.
 *
 * To a ledger that is far away, several operations are under way, spread evenly over a round trip, unless one has failed.
 */
export class SettlementLane {
  readonly waiting: WaitingCharges
  readonly #deps: SettlementLaneDeps
  /** The oldest first. */
  #inFlight: InFlight[] = []
  #callOff: (() => void) | undefined
  #handing = false
  #gathering = false

  constructor(deps: SettlementLaneDeps) {
    this.#deps = deps
    this.waiting = new WaitingCharges(deps.progress)
  }

  /** The charges that the ledger has and has not answered. */
  get flying(): readonly Charge[] {
    return this.#inFlight.flatMap(({ batch }) => batch)
  }

  /** Since when the ledger has not answered; undefined if it has nothing. */
  get unansweredSince(): number | undefined {
    return this.#inFlight[0]?.since
  }

  /** Returns what the ledger has had since a time and does not answer, for others to hand over, and goes on with the rest. */
  leave(since: number): readonly Charge[] {
    const left = this.#inFlight.filter((flight) => flight.since <= since).flatMap(({ batch }) => batch)
    this.#inFlight = this.#inFlight.filter((flight) => flight.since > since)
    for (const charge of left) charge.unanswered++
    return left
  }

  /** The number of charges that are not settled, without those set aside. */
  get size(): number {
    return this.#inFlight.reduce((size, { batch }) => size + batch.length, this.waiting.size)
  }

  /** Since when the oldest charge has waited. */
  get oldest(): number | undefined {
    return this.#inFlight.reduce(
      (oldest, { batch }) => earliest(batch[0]?.since, oldest),
      this.waiting.oldest,
    )
  }

  /** Hands a charge over at once if the ledger is free and does not gather; queues it otherwise. */
  put(charge: Charge): void {
    const isFree = !this.#handing && this.#inFlight.length === 0 && this.waiting.size === 0
    if (isFree && !this.#deps.ledger.gathers && this.#deps.clock.now() >= this.waiting.resumeAt) {
      this.#handing = true
      this.#commit([charge])
      this.#handing = false
      if (this.waiting.size > 0) this.hand()
    } else {
      charge.wait()
      this.waiting.add(charge)
      this.handSoon()
    }
  }

  handSoon(): void {
    if (!this.#deps.ledger.gathers) {
      this.hand()
    } else if (!this.#gathering && this.#mayGoOn) {
      this.#gathering = true
      setImmediate(SettlementLane.#handGathered, this)
    }
  }

  static #handGathered(lane: SettlementLane): void {
    lane.#gathering = false
    lane.hand()
  }

  /** Hands over what is due. */
  hand(): void {
    if (this.#handing) return
    this.#handing = true
    while (this.#mayGoOn) {
      const now = this.#deps.clock.now()
      const pauseMs = this.#pauseMs(now)
      if (pauseMs >= LEAST_PAUSE_MS) {
        this.#handLater(pauseMs, true)
        break
      }
      if (now < this.waiting.resumeAt) {
        this.#handLater(this.waiting.resumeAt - now, true)
        break
      }
      if (!this.#deps.mayHand(this)) break
      const batch = this.waiting.take(now, this.#accountsAtLimit())
      if (batch.length === 0) {
        const due = this.waiting.dueAt
        if (due !== undefined) this.#handLater(due - now, this.waiting.size > 0)
        break
      }
      this.#commit(batch)
    }
    this.#handing = false
  }

  /** Whether the ledger may get more before it has answered what it has. */
  get #mayGoOn(): boolean {
    const { length } = this.#inFlight
    return length === 0 || (length < this.#atOnce && this.waiting.size > 0 && this.waiting.areSound)
  }

  /** Most operations under way. */
  get #atOnce(): number {
    const { ledger, distanceMs } = this.#deps
    return Math.min(ledger.settlesAtOnce ?? 1, Math.floor(distanceMs() / LEAST_SPREAD_MS))
  }

  #pauseMs(now: number): number {
    const last = this.#inFlight.at(-1)
    return last ? this.#deps.distanceMs() / this.#atOnce - (now - last.since) : 0
  }

  /**
   * Returns the accounts that are in as many operations as they may: half of those that may be under way. So one whose rows
   * are locked leaves the others to all other accounts.
   */
  #accountsAtLimit(): ReadonlySet<string> | undefined {
    const most = Math.max(1, Math.floor(this.#atOnce / 2))
    if (this.#inFlight.length < most) return undefined
    const accounts = this.#inFlight.flatMap(({ batch }) => [...new Set(batch.map(({ account }) => account))])
    const often = [...Map.groupBy(accounts, (account) => account)].filter(([, { length }]) => length >= most)
    return new Set(often.map(([account]) => account))
  }

  /** @param keepsAlive whether the timer keeps the process alive, for charges that the ledger may still take. */
  #handLater(inMs: number, keepsAlive: boolean): void {
    this.#callOff?.()
    this.#callOff = this.#deps.clock.after(
      inMs,
      () => {
        this.#callOff = undefined
        this.hand()
      },
      keepsAlive,
    )
  }

  #commit(batch: readonly Charge[]): void {
    const since = this.#deps.clock.now()
    try {
      for (let i = 0; i < batch.length; i++) batch[i]?.hand()
      const answer = this.#deps.ledger.settle(batch)
      if ('then' in answer) this.#concludeLater({ batch, since }, this.#deps.timed(answer))
      else this.#succeeded(batch, answer)
    } catch (error) {
      this.#failed(batch, error)
    }
  }

  #concludeLater(flight: InFlight, answer: Promise<readonly SettlementResult[]>): void {
    const { batch } = flight
    this.#inFlight.push(flight)
    void answer.then(
      (results) => {
        if (this.#finish(flight)) this.#succeeded(batch, results)
        else this.#answeredLeft(batch, results)
        this.handSoon()
      },
      (error: unknown) => {
        if (this.#finish(flight)) this.#failed(batch, error)
        this.handSoon()
      },
    )
  }

  /** Ends a flight. Returns false if it was left to others. */
  #finish(flight: InFlight): boolean {
    const at = this.#inFlight.indexOf(flight)
    if (at >= 0) this.#inFlight.splice(at, 1)
    return at >= 0
  }

  #succeeded(batch: readonly Charge[], results: readonly SettlementResult[]): void {
    this.waiting.settled(batch.length)
    for (let i = 0; i < batch.length; i++) {
      const charge = batch[i] as Charge
      const result = results[i]
      if (result && RESULTS.has(result)) this.#deps.onResult(charge, result)
      else this.#failed([charge], new Error('the ledger did not answer every settlement'))
    }
    this.#deps.onHanded()
  }

  #answeredLeft(batch: readonly Charge[], results: readonly SettlementResult[]): void {
    for (const [i, charge] of batch.entries()) {
      const result = results[i]
      if (result && RESULTS.has(result)) this.#deps.onLeft(charge, result)
    }
  }

  #failed(batch: readonly Charge[], error: unknown): void {
    this.waiting.lastError = error
    for (const charge of batch) charge.unanswered++
    const others = this.#deps.onFailed(batch, error)
    const [alone, other] = batch
    if (others) this.waiting.putBack(others)
    else if (!alone || other) this.waiting.failedTogether(batch)
    else if (this.waiting.failedAlone(alone, this.#deps.clock.now())) this.#deps.onAtFault(alone, error)
    this.#deps.onHanded()
  }
}
