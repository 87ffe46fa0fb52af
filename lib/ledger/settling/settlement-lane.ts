import type { Ledger, SettlementResult } from '../ledger.ts'
import type { Clock } from '../pool/clock.ts'
import type { Charge } from './charge.ts'
import { earliest } from './deadlines.ts'
import { type Progress, WaitingCharges } from './waiting-charges.ts'

/** The parts that {@link SettlementLane} works with. */
export interface SettlementLaneDeps {
  readonly ledger: Pick<Ledger, 'settle' | 'gathers'>
  readonly clock: Clock
  /** Returns how far away the ledger is, in milliseconds. Defaults to near by. */
  readonly distanceMs?: () => number
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
/** Most operations under way at a time, to a ledger that is far away. */
const MAX_FLIGHTS = 3
/** A shorter pause between two of them is not worth it: larger operations take a near ledger less. */
const LEAST_PAUSE_MS = 1

/** An operation that the ledger has not answered, and since when. */
interface Flight {
  readonly batch: readonly Charge[]
  readonly since: number
}

/**
 * Hands charges and voids to the ledger in their order, one operation at a time. When it has ended, the next one takes
 * all that wait. To a ledger that is far away, a few operations are under way at a time, spread over a round trip, unless one has
 * failed. A ledger that gathers also gets what the current turn of the event loop adds: of many answers that are
 * read in one turn, the first would otherwise go alone, and the others would wait for its commit.
 */
export class SettlementLane {
  readonly waiting: WaitingCharges
  readonly #deps: SettlementLaneDeps
  /** The oldest first. */
  readonly #flights: Flight[] = []
  #callOff: (() => void) | undefined
  #handing = false
  #gathering = false

  constructor(deps: SettlementLaneDeps) {
    this.#deps = deps
    this.waiting = new WaitingCharges(deps.progress)
  }

  /** The charges that the ledger has and has not answered. */
  get flying(): readonly Charge[] {
    return this.#flights.flatMap(({ batch }) => batch)
  }

  /** Since when the ledger has not answered; undefined if it has nothing. */
  get unansweredSince(): number | undefined {
    return this.#flights[0]?.since
  }

  /** Returns what the ledger has longest and does not answer, for others to hand over, and goes on with the rest. */
  leave(): readonly Charge[] {
    const left = this.#flights.shift()?.batch ?? []
    for (const charge of left) charge.unanswered++
    return left
  }

  /** The number of charges that are not settled, without those set aside. */
  get size(): number {
    let { size } = this.waiting
    for (const { batch } of this.#flights) size += batch.length
    return size
  }

  /** Since when the oldest charge has waited. */
  get oldest(): number | undefined {
    let { oldest } = this.waiting
    for (const { batch } of this.#flights) oldest = earliest(batch[0]?.since, oldest)
    return oldest
  }

  /** Hands a charge over at once if the ledger is free and does not gather; queues it otherwise. */
  put(charge: Charge): void {
    const isFree = !this.#handing && this.#flights.length === 0 && this.waiting.size === 0
    if (isFree && !this.#deps.ledger.gathers && this.#deps.clock.now() >= this.waiting.resumeAt) {
      this.#handing = true
      this.#commit([charge])
      this.#handing = false
      if (this.waiting.size > 0) this.hand()
    } else {
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
      const batch = this.waiting.take(now)
      if (batch.length === 0) {
        const due = this.waiting.dueAt
        if (due !== undefined) this.#handLater(due - now, this.waiting.size > 0)
        break
      }
      this.#commit(batch)
    }
    this.#handing = false
  }

  /** Whether the ledger may get more now or after a pause, and not only when it has answered. */
  get #mayGoOn(): boolean {
    const { length } = this.#flights
    if (length === 0) return true
    return (
      length < MAX_FLIGHTS &&
      this.waiting.size > 0 &&
      this.waiting.isSound &&
      this.#spreadMs >= LEAST_PAUSE_MS
    )
  }

  /** The time between two operations, so that they are spread evenly over a round trip. */
  get #spreadMs(): number {
    return (this.#deps.distanceMs?.() ?? 0) / MAX_FLIGHTS
  }

  #pauseMs(now: number): number {
    const last = this.#flights.at(-1)
    return last ? this.#spreadMs - (now - last.since) : 0
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
    const flight: Flight = { batch, since: this.#deps.clock.now() }
    this.#flights.push(flight)
    try {
      for (let i = 0; i < batch.length; i++) batch[i]?.hand()
      const answer = this.#deps.ledger.settle(batch)
      if ('then' in answer) this.#concludeLater(flight, answer)
      else if (this.#land(flight)) this.#succeeded(batch, answer)
    } catch (error) {
      this.#land(flight)
      this.#failed(batch, error)
    }
  }

  #concludeLater(flight: Flight, answer: Promise<readonly SettlementResult[]>): void {
    const { batch } = flight
    void answer.then(
      (results) => {
        if (this.#land(flight)) this.#succeeded(batch, results)
        else this.#answeredLeft(batch, results)
        this.handSoon()
      },
      (error: unknown) => {
        if (this.#land(flight)) this.#failed(batch, error)
        this.handSoon()
      },
    )
  }

  /** Ends a flight. Returns false if it was left to others. */
  #land(flight: Flight): boolean {
    const at = this.#flights.indexOf(flight)
    if (at === -1) return false
    this.#flights.splice(at, 1)
    return true
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
